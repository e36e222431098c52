"""Durable storage: the only layer that knows SQL. `Store` is its interface, and only values cross it."""

from .store import Store

__all__ = ["Store"]
