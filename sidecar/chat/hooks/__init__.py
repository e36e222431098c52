"""Runs hooks: finds their files, selects and runs them, and converts their output."""
