"""What is kept: the only floor that knows SQL. `Store` is its door; everything goes in and out as values."""

from .store import Store

__all__ = ["Store"]
