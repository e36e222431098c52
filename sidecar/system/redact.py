"""The secrets that this process knows, and their absence from what it writes. Standard library only.

A secret that was once learned stays hidden for as long as the process lives, also when it is no longer in use.
"""

from __future__ import annotations

from collections.abc import Iterable

HIDDEN = "(hidden)"

MIN_LENGTH = 8
"""Shorter ones are no secrets, and taking them out would tear holes into every text."""

_spellings: tuple[str, ...] = ()
"""The longest first, since a secret may be a part of another. Replaced as a whole: any thread may be reading it."""


def learn(secrets: Iterable[str | None]) -> None:
    """Hide these from now on, also as they are spelled in JSON and in an address."""
    global _spellings
    new = {secret for secret in secrets if secret and len(secret) >= MIN_LENGTH}.difference(_spellings)
    if new:
        known = {*_spellings, *(spelling for secret in new for spelling in _spelled(secret))}
        _spellings = tuple(sorted(known, key=len, reverse=True))


def redacted(text: str) -> str:
    """The text with every known secret replaced."""
    for spelling in _spellings:
        if spelling in text:
            text = text.replace(spelling, HIDDEN)
    return text


def _spelled(secret: str) -> set[str]:
    import json
    from urllib.parse import quote

    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote(secret)}
