"""Transcripts: conversations as they went over the wire, and what in them differs from one play to the next.

A line is `{"from": "setup" | "client" | "sidecar" | "outside", …}`: a process that starts, a message to it, a message
of it, a file that somebody else changes. Random values are written as placeholders of the same shape and length, times
as one instant, the folder of the play as one path; `Play` turns them into the values of this play and back.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sidecar_protocol.export.__main__ import PROTOCOL

Json = dict[str, Any]

FOLDER = PROTOCOL / "transcripts"
HOME = "/home/ada"
TIME = 1794784325173

IDS = ("t", "i", "p", "pa", "co", "pe", "in", "r", "sn", "hk", "hr")
"""How random ids begin: turns, items, prompts, patches, compactions, permissions, inputs, rules, snapshots, hooks and
their runs."""

ID = re.compile(rf"\b({'|'.join(IDS)})-[0-9a-f]{{12}}\b")

SOURCE = re.compile(r"\bout:[a-z2-7]{8}\b")

SHAPES = {
    **{kind: rf"{kind}-[0-9a-f]{{12}}" for kind in IDS},
    "e": r"[0-9a-f]{12}",
    "f": r"[0-9a-f]{16}",
    "o": r"out:[a-z2-7]{8}",
}
"""What a placeholder may stand for, by how it begins: an id, an epoch, an instance, a text in the index."""

LOOSE = {
    "uptimeMs",
    "pid",
    "databaseBytes",
    "diskBytes",
    "bytesFreed",
    "bytes",
    "day",
    "used",
    "tokens",
    "tokensBefore",
    "tokensAfter",
    "score",
    "ms",
    "lastMs",
}
"""Members of which only the JSON type counts: they depend on the machine, or on the random marks of a chat's fences."""

LANGUAGES = ".language.enum"
"""Where the languages stand that code can be run in: those that the machine has installed."""

_PLACEHOLDER = re.compile(
    rf"\b(?:{'|'.join(IDS)})-0{{9}}\d{{3}}\b|\be0{{8}}\d{{3}}\b|\bf0{{12}}\d{{3}}\b|\bout:0{{5}}\d{{3}}\b|{TIME}"
)

_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Nothing of the tester's own configuration may change what a repository's files look like."""


def load(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def lay_out(folder: Path, line: Json) -> None:
    """Write the files of a line, and commit those of the folder that it calls a repository."""
    for name, text in line.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    if "repository" in line:
        person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        for words in (("init", "-q"), ("add", "."), (*person, "commit", "-qm", "Begin")):
            command = ["git", *words]
            subprocess.run(command, cwd=folder / line["repository"], env=os.environ | _GIT, check=True)


def placeholder(kind: str, number: int) -> str:
    """The `number`th random value of its kind, as long as the real one."""
    if kind in IDS:
        return f"{kind}-{number:012d}"
    if kind == "o":
        return f"out:{number:08d}"
    return f"{kind}{number:011d}" if kind == "e" else f"{kind}{number:015d}"


def spellings(folder: str) -> tuple[str, str]:
    """The folder of the play as it may stand in a message: as it is, and as Markdown's marks are escaped in it."""
    return folder, re.sub(r"([\\`*_\[\]<>|])", r"\\\1", folder)


def lanes(messages: Iterable[Json]) -> Json:
    """What must come in order: each chat's events, each id's answers, each request of the sidecar and its end.

    Either side counts its own requests, so that one id may stand for two of them. `status` may come at any moment.
    """
    found: Json = {}
    for message in messages:
        method = message.get("method")
        if method == "event":
            found.setdefault(f"{message['params']['sessionId']}.events", []).append(message["params"])
        elif method is None:
            found.setdefault(f"answers to {message['id']}", []).append(message)
        elif method == "$/cancelRequest":
            found.setdefault(f"request {message['params']['id']}", []).append(message)
        elif "id" in message:
            found.setdefault(f"request {message['id']}", []).append(message)
    return found


class Play:
    """What the placeholders stand for in one play. Each stands for one value, and no two for the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._spellings = spellings(self._folder)
        self._real: dict[str, str] = {}

    def real(self, text: str) -> str:
        """A client's line with the values of this play."""
        text = _PLACEHOLDER.sub(lambda found: self._real.get(found[0], found[0]), text)
        return text.replace(HOME, self._folder)

    def difference(self, expected: Any, actual: Any, path: str = "") -> str | None:
        """Where `actual` is not what the transcript says; None when it is."""
        name = path.rpartition(".")[2]
        if type(expected) is not type(actual):
            return f"{path}: {expected!r} is not {actual!r}"
        if name in LOOSE or path.endswith(LANGUAGES) or (name == "version" and isinstance(expected, str)):
            return None
        if isinstance(expected, dict):
            return self._dict_difference(expected, actual, path)
        if isinstance(expected, list):
            return self._list_difference(expected, actual, path)
        said = str(actual)
        for spelling in self._spellings:
            said = said.replace(spelling, HOME)
        same = self._same_text(str(expected), said)
        return None if same else f"{path}: {expected!r} is not {actual!r}"

    def _dict_difference(self, expected: Json, actual: Json, path: str) -> str | None:
        if expected.keys() != actual.keys():
            return f"{path}: {sorted(expected.keys() ^ actual.keys())} stand only on one side"
        if "checks" in expected or "openrpc" in expected:
            return None  # What the doctor finds is the machine's; the document stands elsewhere in full.
        return next(
            filter(None, (self.difference(expected[k], actual[k], f"{path}.{k}") for k in expected)), None
        )

    def _list_difference(self, expected: list[Any], actual: list[Any], path: str) -> str | None:
        if path.endswith(".events"):
            expected, actual = coalesced(expected), coalesced(actual)
        if len(expected) != len(actual):
            return f"{path}: {len(expected)} are not {len(actual)}: {expected!r:.2000} {actual!r:.2000}"
        pairs = enumerate(zip(expected, actual, strict=True))
        return next(filter(None, (self.difference(e, a, f"{path}[{n}]") for n, (e, a) in pairs)), None)

    def _same_text(self, expected: str, actual: str) -> bool:
        names = _PLACEHOLDER.findall(expected)
        if not names:
            return expected == actual
        literals = [re.escape(part) for part in _PLACEHOLDER.split(expected)]
        pattern = literals[0] + "".join(
            f"({_shape(name)}){literal}" for name, literal in zip(names, literals[1:], strict=True)
        )
        found = re.fullmatch(pattern, actual, re.DOTALL)
        return found is not None and all(map(self._bind, names, found.groups()))

    def _bind(self, name: str, value: str) -> bool:
        if name == str(TIME):
            return True
        if name not in self._real and value in self._real.values():
            return False
        return self._real.setdefault(name, value) == value


def coalesced(events: list[Json]) -> list[Json]:
    """Runs of deltas joined as far as they go: how many share a frame depends on the moment."""
    joined: list[Json] = []
    for event in events:
        event = {"from": event["seq"], **event}
        last = joined[-1] if joined else None
        if (
            last
            and _is_delta(event)
            and _is_delta(last)
            and last["data"]["itemId"] == event["data"]["itemId"]
        ):
            text = last["data"]["text"] + event["data"]["text"]
            joined[-1] = {**event, "from": last["from"], "data": {**event["data"], "text": text}}
        else:
            joined.append(event)
    return joined


def _is_delta(event: Json) -> bool:
    return str(event["type"]).endswith((".delta", ".output"))


def _shape(name: str) -> str:
    kind = name.partition("-")[0] if "-" in name else name[0]
    return r"\d{13}" if name == str(TIME) else SHAPES[kind]
