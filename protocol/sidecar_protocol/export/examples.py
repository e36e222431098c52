"""One true example of each method, and of each request to the client: a request and the result that it got.

They come from `protocol/transcripts/*.jsonl`, which the tests replay. `examples.json` keeps them beside this
module, so that an installed package answers `rpc.discover` as the repository does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from sidecar_protocol.catalog import METHODS, REQUESTS
from sidecar_protocol.messages.base import Json

FILE = Path(__file__).with_name("examples.json")


class Example(msgspec.Struct, frozen=True):
    """The parameters of a request and the result of its reply."""

    params: Json
    result: Json


WRITTEN = {
    "models/fetch": Example(
        {"name": "smollm2"},
        {
            "model": "local:smollm2",
            "path": "/home/ada/.local/share/sidecar/models/smollm2.gguf",
            "bytes": 98_362_432,
            "fetched": True,
        },
    ),
}
"""Of methods whose result needs a download of many megabytes, which no transcript replays."""


@cache
def examples() -> dict[str, Example]:
    """The kept examples by name."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Example])


def from_transcripts(folder: Path) -> dict[str, Example]:
    """The first answered request of each name, the transcripts read in the order of their names; and those that no
    transcript has.
    """
    found: dict[str, Example] = dict(WRITTEN)
    for path in sorted(folder.glob("*.jsonl")):
        for method, example in _exchanges(path):
            found.setdefault(method, example)
    return {name: found[name] for name in [*METHODS, *REQUESTS] if name in found}


def _exchanges(path: Path) -> Iterator[tuple[str, Example]]:
    # Either side counts its own requests, so that an id alone does not tell whose request it is.
    asked: dict[tuple[str, str | int], Json] = {}
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        message, sender = entry.get("message", {}), entry["from"]
        other = "client" if sender == "sidecar" else "sidecar"
        if "method" in message and "id" in message:
            asked[sender, message["id"]] = message
        elif "result" in message and (other, message["id"]) in asked:
            request = asked.pop((other, message["id"]))
            yield request["method"], Example(request.get("params", {}), message["result"])
