"""Every transcript is played against the real sidecar, which must say what it said when it was recorded."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.export.__main__ import PROTOCOL
from sidecar_protocol.export.examples import from_transcripts

from tests.support.frames import encode
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .transcripts import FOLDER, HOME, Json, Play, load

TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)


@each_transcript
def test_the_sidecar_says_what_the_transcript_says(path: Path, spawn: Spawner) -> None:
    play = Play(spawn.folder)
    for lines in _processes(load(path)):
        sidecar = _start(spawn, lines[0])
        for line in lines[1:]:
            if line["from"] == "client":
                _say(sidecar, play.real(line.get("raw") or json.dumps(line["message"], ensure_ascii=False)))
            else:
                _await(sidecar, line["message"], play)
        sidecar.close_stdin()
        sidecar.wait()
        said = [line["message"] for line in lines if line["from"] == "sidecar"]
        assert play.difference(_lanes(said), _lanes(sidecar.frames)) is None


@each_transcript
def test_the_requests_and_results_of_a_transcript_decode(path: Path) -> None:
    asked: dict[Any, str] = {}
    for line in load(path):
        message = line.get("message", {})
        if message.get("method") in METHODS:
            asked[message["id"]] = message["method"]
        elif "result" in message:
            method = METHODS[asked[message["id"]]]
            msgspec.convert(message["result"], method.result)


def test_every_method_is_answered_with_a_result_in_some_transcript() -> None:
    assert METHODS.keys() - from_transcripts(FOLDER).keys() == set()


@each_transcript
def test_a_transcript_names_no_folder_of_the_machine_that_recorded_it(path: Path) -> None:
    folders = re.findall(r'(?<=["\s:])/[\w.-]+/[\w.-]+', path.read_text("utf-8"))

    assert set(folders) <= {HOME}


def test_rpc_discover_answers_the_committed_document(sidecar: Sidecar) -> None:
    assert sidecar.call("rpc.discover") == json.loads((PROTOCOL / "openrpc.json").read_text("utf-8"))


def _processes(lines: list[Json]) -> Iterator[list[Json]]:
    """The lines of each process, beginning with its setup."""
    starts = [number for number, line in enumerate(lines) if line["from"] == "setup"]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:end]


def _start(spawn: Spawner, setup: Json) -> Sidecar:
    for name, text in setup.get("files", {}).items():
        (spawn.folder / name).write_text(text, "utf-8")
    model = setup["model"].replace(HOME, str(spawn.folder))
    sidecar = spawn(model=model, framing=setup["framing"], initialize=False)
    sidecar.referee.lenient = True
    return sidecar


def _say(sidecar: Sidecar, text: str) -> None:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        message = json.loads(text)
        sidecar.referee.asked(message["id"], message["method"], message["params"])
    sidecar.send_bytes(encode(text.encode(), sidecar.framing))


def _await(sidecar: Sidecar, message: Json, play: Play) -> None:
    """Wait until the message has come; what answers teach is needed by later requests."""
    if message.get("method") == "event":
        event = message["params"]
        sidecar.wait_event(event["sessionId"], lambda seen: seen["seq"] >= event["seq"])
    elif "method" not in message and message["id"] is not None:
        assert play.difference(message, sidecar.answer(message["id"])) is None


def _lanes(messages: list[Json]) -> Json:
    """What must come in order: each chat's events, each id's answers. `status` may come at any moment."""
    lanes: Json = {}
    for message in messages:
        if message.get("method") == "event":
            lanes.setdefault(f"{message['params']['sessionId']}.events", []).append(message["params"])
        elif "method" not in message:
            lanes.setdefault(f"id {message['id']}", []).append(message)
    return lanes
