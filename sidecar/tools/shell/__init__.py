"""Tools that run commands and code."""
