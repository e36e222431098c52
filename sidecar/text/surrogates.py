"""Halves of surrogate pairs, which JSON and names of files may contain and UTF-8 cannot."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """Join adjacent halves, and replace single ones by the replacement character."""
    if is_well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_well_formed(text: str) -> bool:
    """Return whether the text can be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
