"""What is kept out of the window and found again, by its words."""

from .index import Index
from .preview import preview

__all__ = ["Index", "preview"]
