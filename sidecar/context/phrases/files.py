"""Reads the lists of words and phrases that are part of the program."""

from __future__ import annotations

import os
from typing import TypeVar

import msgspec

Content = TypeVar("Content")

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "words")


def read_words(name: str, type: type[Content]) -> Content:
    """Return what `words/<name>.json` contains."""
    with open(os.path.join(_FOLDER, f"{name}.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=type)
