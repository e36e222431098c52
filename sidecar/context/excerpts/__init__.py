"""A part of a text that is too long for its room: what the prompt points at, the outline, head and tail. Pure.

`pointing` reads the prompt, `outline` the structure of the text, `order` says which lines come first, and `fitting`
takes as many of them as fit.
"""

from __future__ import annotations

from .fitting import excerpt

__all__ = ["excerpt"]
