"""The models that can be downloaded: their official files, the packages with copies of them, and the hashes of both.

A model is listed only if two independent public sources state the hash of its official file.
"""

from __future__ import annotations

import os
from functools import cache

import msgspec

_DATA = os.path.join(os.path.dirname(__file__), "pins.json")


class PinnedPart(msgspec.Struct, frozen=True, rename="camel"):
    """A wheel with a piece of the model, as its file `member`."""

    project: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    bytes: int

    @property
    def version(self) -> str:
        return self.wheel.split("-")[1]


class PinnedModel(msgspec.Struct, frozen=True, rename="camel"):
    """A model. Its `parts`, one after the other, are the file; `official` is the URL of the whole."""

    name: str
    title: str
    good_for: str
    note: str
    bytes: int
    sha256: str
    parts: list[PinnedPart]
    official: str | None = None


@cache
def pinned_models() -> dict[str, PinnedModel]:
    """Return the models by name, the smallest first."""
    with open(_DATA, "rb") as file:
        found = msgspec.json.decode(file.read(), type=list[PinnedModel])
    return {pin.name: pin for pin in found}
