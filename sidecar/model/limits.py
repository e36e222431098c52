"""Limits on incoming text, and the errors that name them."""

from __future__ import annotations

from .failures import Refused

MAX_TEXT_BYTES = 4 * 1024 * 1024
"""UTF-8 bytes of one text that becomes part of a chat: a million tokens, more than the context windows of
nearly all models. A commit occupies the writer as long as its largest text takes, so this bounds how long
other chats wait."""


MAX_QUERY_BYTES = 8 * 1024
"""UTF-8 bytes of a search: the time that SQLite needs grows with the square of the number of words, and other reads
wait for it."""


def is_too_long(text: str, limit: int = MAX_TEXT_BYTES) -> bool:
    """Return whether the text has more bytes; most are measured without encoding."""
    if len(text) * 4 <= limit:
        return False
    return len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit


def check_text(field: str, text: str, limit: int = MAX_TEXT_BYTES, remedy: str = "") -> None:
    """Refuse (-32602) a text that is too long, naming its field, the limit and the remedy."""
    if is_too_long(text, limit):
        advice = remedy or "Shorten it, or name a file that tools can read in part"
        raise Refused(
            "invalid_params",
            f"`{field}`: at most {limit} bytes of UTF-8. {advice}",
            reason="too_long",
            params={"field": field, "limit": limit, "expected": f"at most {limit} bytes"},
        )
