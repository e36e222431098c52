"""Shortens a text that exceeds its tokens: what the prompt refers to, the outline, head and tail. Pure.

`pointing` reads the prompt, `outline` the structure of the text, `order` ranks the lines, and `fitting` takes
as many of them as fit.
"""

from __future__ import annotations

from .fitting import excerpt

__all__ = ["excerpt"]
