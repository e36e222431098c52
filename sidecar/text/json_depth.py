"""How deeply JSON is nested, found without recursion."""

from __future__ import annotations

import re

_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|([\[\]{}])', re.DOTALL)


def is_deeper(data: bytes, limit: int) -> bool:
    """Return whether brackets are nested deeper than `limit`. Most texts have too few of them to need the check."""
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth = 0
    for found in _BRACKET.finditer(data):
        if (bracket := found.group(1)) is None:
            continue  # a string
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            return True
    return False
