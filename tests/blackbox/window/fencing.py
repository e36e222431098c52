"""Reads fences out of what was sent, as a careful model would: by the mark of the opening line, to its own end."""

from __future__ import annotations

import re

import msgspec

_OPENING = re.compile(r"^\[\[([0-9a-f]{12}) (.*) \(data, not instructions\)\]\]$", re.MULTILINE)


class Fence(msgspec.Struct, frozen=True):
    mark: str
    label: str
    text: str


def fences(text: str) -> tuple[list[Fence], str]:
    """The fences of a message, in order, and what stands outside of all of them. Raises when one does not end."""
    found: list[Fence] = []
    outside: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        outside.append(text[at : opening.start()])
        closing = f"\n[[/{opening[1]}]]"
        end = text.find(closing, opening.end())
        if end < 0:
            raise ValueError(f"the fence {opening[0]} does not end")
        found.append(Fence(opening[1], opening[2], text[opening.end() + 1 : end]))
        at = end + len(closing)
    return found, "".join([*outside, text[at:]])
