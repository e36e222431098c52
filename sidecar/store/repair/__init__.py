"""Checking, repairing and copying a database."""
