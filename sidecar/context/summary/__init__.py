"""The structured summary that replaces turns which are no longer sent: its shape, its rendering and cutting,
its extraction without a model, and the request for it to a model. Pure except for its word lists, which are
read once."""

from __future__ import annotations

from .asking import parse_summary, summary_request
from .extracting import extract
from .fitting import fit_summary
from .shape import Fact, KnownError, Summary, TouchedFile, UserQuote, render_summary

__all__ = [
    "Fact",
    "KnownError",
    "Summary",
    "TouchedFile",
    "UserQuote",
    "extract",
    "fit_summary",
    "parse_summary",
    "render_summary",
    "summary_request",
]
