"""Instruction rules of a project and its user: find, read, select for a prompt, merge into one text.

`sources` opens files, those of a project only through the workspace; the rest is pure. A rule is text: its handler
runs only through `handlers.run_handler`, for trusted projects. Does not know the context window or where the
statistics of rules are stored.
"""

from __future__ import annotations

from .choosing import choose_rules
from .freshness import Freshness, record_use
from .rendering import RulesBlock, render_rules
from .rule import Instruction
from .sources import read_rules

__all__ = [
    "Freshness",
    "Instruction",
    "RulesBlock",
    "choose_rules",
    "read_rules",
    "record_use",
    "render_rules",
]
