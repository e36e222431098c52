"""The word for one of many. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def counted(count: int, many: str) -> str:
    """Return a number with its word, given for many: "1 patch", "2 patches", "1 entry"."""
    return f"{count:,} {many if count != 1 else singular(many)}"


def counted_fields(value: object, names: Iterable[str]) -> str:
    """Return the fields of a value that are not 0, by their names: "2 patches, 1 turn"."""
    counts = [(getattr(value, name), name) for name in names]
    return ", ".join(counted(count, name) for count, name in counts if count) or "nothing"


def singular(many: str) -> str:
    if many.endswith("ies"):
        return f"{many[:-3]}y"
    return many[:-2] if many.endswith(("ches", "shes", "sses", "xes")) else many[:-1]
