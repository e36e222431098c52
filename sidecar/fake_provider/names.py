"""Long lists of names, written as running text: a list literal would be a page of quotes."""

from __future__ import annotations


def names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())
