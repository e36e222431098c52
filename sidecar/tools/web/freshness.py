"""How long a response may be cached, by its headers and the user's setting. Pure.

The cache is private to one user, so `private` does not prevent caching, and `s-maxage` does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_CACHEABLE_STATUSES = (200, 203, 301, 308)
"""Status codes that may be cached without explicit freshness; other redirects need it."""


def lifetime(status: int, headers: Mapping[str, str], ttl: float, now: float) -> float | None:
    """Return for how many seconds the response is fresh, 0 to revalidate each time; None: it is not cached."""
    said = _directives(headers.get("cache-control", ""))
    if (
        status not in (*_CACHEABLE_STATUSES, 302, 303, 307)
        or "no-store" in said
        or headers.get("vary", "").strip() == "*"
    ):
        return None
    if "no-cache" in said:
        return 0.0
    allowed = _server_lifetime(said, headers, now)
    if allowed is None:
        return ttl if status in _CACHEABLE_STATUSES else None
    return max(0.0, min(ttl, allowed - _number(headers.get("age", ""), 0.0)))


def _server_lifetime(said: Mapping[str, str], headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the server allows; None when it does not say."""
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
