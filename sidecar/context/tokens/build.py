"""Regenerates the tables: `python -m sidecar.context.tokens.build PACKAGE_FOLDER`.

The folder is an unpacked npm package `tiktoken` (`npm pack tiktoken`), which contains the tables as JSON. A
table is written only if it has the sha256 that tiktoken expects.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

import msgspec

from . import ranks
from .encodings import TABLES, path_of


class Published(msgspec.Struct):
    """The part of a package's file that is read: lines of `NAME FIRST_RANK TOKEN TOKEN …`, tokens in base64."""

    bpe_ranks: str


def tokens_of(file: Path) -> list[bytes]:
    """Return the tokens in the order of their ranks."""
    published = msgspec.json.decode(file.read_bytes(), type=Published)
    tokens: list[bytes] = []
    for line in published.bpe_ranks.splitlines():
        _, first, *encoded = line.split(" ")
        if int(first) != len(tokens):
            raise ValueError(f"{file}: a line starts at rank {first}; rank {len(tokens)} is next.")
        tokens.extend(map(base64.b64decode, encoded))
    return tokens


def build(package: Path) -> None:
    for name, table in TABLES.items():
        tokens = tokens_of(package / "encoders" / f"{name}.json")
        found = hashlib.sha256(ranks.tiktoken_file(tokens)).hexdigest()
        if found != table.sha256:
            raise ValueError(f"{name} has the sha256 {found}; tiktoken expects {table.sha256}.")
        path_of(name).write_bytes(ranks.pack_ranks(tokens))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder of an unpacked npm package `tiktoken`.")
    build(Path(sys.argv[1]))
