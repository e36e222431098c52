"""How far two spellings are apart."""

from __future__ import annotations


def edit_distance(one: str, other: str, most: int) -> int:
    """Return how many letters must be inserted, deleted, replaced or swapped; results over `most` may be too
    high."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at] + [0] * len(other)
        for to, wanted in enumerate(other, 1):
            row[to] = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                row[to] = min(row[to], earlier[to - 2] + 1)
        if min(row) > most:
            break
    return row[-1]
