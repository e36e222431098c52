"""Instruction rules of a project and its user: found, read, chosen for a prompt, merged into one text.

`read` opens files, through the workspace alone where they are a project's; the rest is pure. A rule is text:
what it names as its handler runs only when somebody calls `handlers.run_handler`, which is for projects that
are trusted. Not known here is which window the block is for, or where the figures on the rules are kept.
"""

from __future__ import annotations

from .choosing import chosen
from .freshness import Freshness, seen
from .rendering import Block, rendered
from .rule import Instruction
from .sources import read

__all__ = ["Block", "Freshness", "Instruction", "chosen", "read", "rendered", "seen"]
