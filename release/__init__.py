"""Builds what an app ships: the wheel and binaries that need no Python. `make dist` runs it."""
