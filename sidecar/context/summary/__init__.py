"""The structured summary that stands for turns which are no longer sent: its shape, how it is drawn and cut to size,
how it is made without a model, and how a model is asked for it. Pure but for its word lists, which are read once.
"""

from __future__ import annotations

from .asking import parsed, request
from .extracting import extract
from .fitting import fitted
from .shape import Fact, File, Said, Summary, Trouble, rendered

__all__ = [
    "Fact",
    "File",
    "Said",
    "Summary",
    "Trouble",
    "extract",
    "fitted",
    "parsed",
    "rendered",
    "request",
]
