"""One true example of each method: a request and the result that a real sidecar gave.

They come from `protocol/transcripts/*.jsonl`, which the tests replay. `examples.json` keeps them beside this
module, so that an installed package answers `rpc.discover` as the repository does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from sidecar_protocol.catalog import METHODS
from sidecar_protocol.messages.base import Json

FILE = Path(__file__).with_name("examples.json")


class Example(msgspec.Struct, frozen=True):
    """The parameters of a request and the result of its reply."""

    params: Json
    result: Json


@cache
def examples() -> dict[str, Example]:
    """The kept examples by method."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Example])


def from_transcripts(folder: Path) -> dict[str, Example]:
    """The first answered request of each method, the transcripts read in the order of their names."""
    found: dict[str, Example] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for method, example in _exchanges(path):
            found.setdefault(method, example)
    return {name: found[name] for name in METHODS if name in found}


def _exchanges(path: Path) -> Iterator[tuple[str, Example]]:
    asked: dict[str | int, Json] = {}
    for line in path.read_text("utf-8").splitlines():
        message = json.loads(line).get("message", {})
        if "method" in message and "id" in message:
            asked[message["id"]] = message
        elif "result" in message and message["id"] in asked:
            request = asked.pop(message["id"])
            yield request["method"], Example(request.get("params", {}), message["result"])
