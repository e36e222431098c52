"""How long an answer may be kept, by its headers and the user's setting. Pure.

The cache is one user's own, so `private` is no hindrance, and `s-maxage` is not meant for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LASTING = (200, 203, 301, 308)
"""What may be kept without the server's saying so; another way on is only kept when it says how long."""


def lifetime(status: int, headers: Mapping[str, str], ttl: float, now: float) -> float | None:
    """Seconds for which the answer counts as fresh, 0 when it is to be asked about each time; None: it is not kept."""
    said = _directives(headers.get("cache-control", ""))
    if (
        status not in (*_LASTING, 302, 303, 307)
        or "no-store" in said
        or headers.get("vary", "").strip() == "*"
    ):
        return None
    if "no-cache" in said:
        return 0.0
    allowed = _allowed(said, headers, now)
    if allowed is None:
        return ttl if status in _LASTING else None
    return max(0.0, min(ttl, allowed - _number(headers.get("age", ""), 0.0)))


def _allowed(said: Mapping[str, str], headers: Mapping[str, str], now: float) -> float | None:
    """What the server allows, in seconds; None when it says nothing."""
    if "max-age" in said:
        return _number(said["max-age"], 0.0)
    if "expires" not in headers:
        return None
    expires = _time(headers["expires"])
    return 0.0 if expires is None else expires - (_time(headers.get("date", "")) or now)


def _directives(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text[:1000].lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _number(text: str, default: float) -> float:
    text = text.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 12 else default


def _time(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
