"""The secrets that this process knows, and their redaction from what it writes. Standard library only.

A known secret stays redacted for as long as the process lives, also when it is no longer in use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "(hidden)"

MIN_LENGTH = 8
"""Shorter values are not secrets, and redacting them would damage every text."""

_spellings: tuple[str, ...] = ()
"""The longest first, since a secret may be a part of another. Replaced as a whole: any thread may be reading it."""


def add_secrets(secrets: Iterable[str | None]) -> None:
    """Redact these from now on, also in their JSON and URL encodings."""
    global _spellings
    new = {secret for secret in secrets if secret and len(secret) >= MIN_LENGTH}.difference(_spellings)
    if new:
        known = {*_spellings, *(spelling for secret in new for spelling in _spellings_of(secret))}
        _spellings = tuple(sorted(known, key=len, reverse=True))


def redact_text(text: str) -> str:
    """Return the text with every known secret replaced."""
    for spelling in _spellings:
        if spelling in text:
            text = text.replace(spelling, HIDDEN)
    return text


def _spellings_of(secret: str) -> set[str]:
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote(secret)}
