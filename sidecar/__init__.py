"""The process that a desktop chat app spawns to talk to a model."""

__version__ = "0.1.0"
