"""Stores and transports that are broken on purpose, each caught by the suite that is meant for it."""
