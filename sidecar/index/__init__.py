"""The index: stores text that is not in the context window, and searches it by words."""

from .index import Index
from .preview import preview

__all__ = ["Index", "preview"]
