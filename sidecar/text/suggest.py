"""What a name was probably meant to be, for error messages."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_COMPARED = 256
"""Characters of a name that are compared: it comes from outside, and difflib takes quadratic time."""

SIMILARITY = 0.6
"""How alike two names are, by difflib's measure from 0 to 1, if one was probably meant."""


def did_you_mean(
    name: str, known: Iterable[str], *, count: int = 1, similarity: float = SIMILARITY
) -> list[str]:
    """At most `count` of the `known` names that are spelled like `name`, the nearest first."""
    from difflib import get_close_matches  # only errors need it, and reading settings imports nothing heavy

    return get_close_matches(name[:MAX_COMPARED], list(known), count, similarity)
