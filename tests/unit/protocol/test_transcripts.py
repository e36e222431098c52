"""Every transcript is played against the real sidecar, which must say what it said when it was recorded."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sidecar_protocol.catalog import METHODS, REQUESTS, Method, Question
from sidecar_protocol.export.__main__ import PROTOCOL
from sidecar_protocol.export.examples import from_transcripts
from sidecar_protocol.export.order import order_of, when_in_words

from tests.support.frames import encode
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .conversations import CONVERSATIONS
from .transcripts import FOLDER, HOME, Json, Play, lanes, lay_out, load

TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl"))

EVERYWHERE = ("/dev/null", "/usr/bin")
"""What a diff calls a file that is not there, and where the doctor is said to have found a program."""

_TABLES: dict[str, Mapping[str, Method | Question]] = {
    "client": METHODS,
    "sidecar": REQUESTS,
    "setup": {},
    "outside": {},
}
"""What each line's sender may ask."""

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)


@pytest.mark.sampled(6)
@each_transcript
def test_the_sidecar_says_what_the_transcript_says(path: Path, spawn: Spawner) -> None:
    play = Play(spawn.folder)
    for lines in _processes(load(path)):
        sidecar = _start(spawn, lines[0])
        for line in lines[1:]:
            if line["from"] == "client":
                _say(sidecar, play.real(line.get("raw") or json.dumps(line["message"], ensure_ascii=False)))
            elif line["from"] == "outside":
                lay_out(spawn.folder, line)
            else:
                _await(sidecar, line["message"], play)
        sidecar.close_stdin()
        sidecar.wait()
        said = [line["message"] for line in lines if line["from"] == "sidecar"]
        assert play.difference(lanes(said), lanes(sidecar.frames)) is None


@each_transcript
def test_the_requests_and_results_of_a_transcript_decode(path: Path) -> None:
    asked: dict[tuple[str, Any], Method | Question] = {}
    for line in load(path):
        message, sender = line.get("message", {}), line["from"]
        if message.get("method") in _TABLES[sender]:
            asked[sender, message["id"]] = _TABLES[sender][message["method"]]
        if message.get("method") in REQUESTS:
            msgspec.convert(message["params"], REQUESTS[message["method"]].params)
        if "result" in message:
            asker = "client" if sender == "sidecar" else "sidecar"
            msgspec.convert(message["result"], asked[asker, message["id"]].result)


ANSWER_FIRST = ("prompt/send", "turn/retry", "prompt/resume")
"""Methods whose events follow their answer, as the reference says of them."""


@each_transcript
def test_the_events_of_a_prompt_follow_the_answer_and_a_cancelled_turn_ends_before_it(path: Path) -> None:
    asked: dict[Any, str] = {}
    ended: set[int] = set()
    newest: dict[str, int] = {}
    for line in load(path):
        message = line.get("message", {})
        if line["from"] == "setup":
            asked, newest = {}, {}
        elif line["from"] == "client" and "method" in message:
            asked[message.get("id")] = message["method"]
        elif message.get("method") == "event":
            event = message["params"]
            newest[event["sessionId"]] = event["seq"]
            ended |= {event["seq"]} if event["type"] == "turn.ended" else set()
        elif line["from"] == "sidecar" and "result" in message:
            result, method = message["result"], asked[message["id"]]
            if method in ANSWER_FIRST and result.get("disposition") != "duplicate" and "seq" in result:
                assert newest.get(result["sessionId"], 0) < result["seq"]
            if method == "turn/cancel" and result.get("outcome") == "cancelled":
                assert result["endSeq"] in ended


@each_transcript
def test_the_reference_names_the_events_that_a_method_causes_outside_of_turns(path: Path) -> None:
    asked, unnamed = None, set()
    for line in load(path):
        message = line.get("message", {})
        if line["from"] == "client" and message.get("method") in METHODS:
            asked = METHODS[message["method"]]
        if line["from"] == "sidecar" and message.get("method") == "event" and asked is not None:
            event = message["params"]
            in_turn = "turnId" in event or when_in_words(event["type"]).startswith("Comes while a turn")
            if not in_turn and asked.name != "chat/open" and event["type"] not in order_of(asked).events:
                unnamed.add((asked.name, event["type"]))
    assert unnamed == set()


def test_every_method_is_answered_with_a_result_in_some_transcript() -> None:
    assert METHODS.keys() - from_transcripts(FOLDER).keys() == set()


def test_every_request_of_the_sidecar_is_answered_with_a_result_in_some_transcript() -> None:
    assert REQUESTS.keys() - from_transcripts(FOLDER).keys() == set()


def test_ids_of_both_sides_meet_in_the_transcripts() -> None:
    """A client that keeps the requests of both sides in one table fails on them."""
    met = [path.stem for path in TRANSCRIPTS if set.intersection(*_ids(load(path)))]

    assert "15-tools-and-permissions" in met


def test_every_transcript_is_listed_and_can_be_recorded_again() -> None:
    names = [path.stem for path in TRANSCRIPTS]

    assert (
        re.findall(r"^\| \[(.+?)\]\(\1\.jsonl\) ", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
        == names
    )
    assert list(CONVERSATIONS) == names


@each_transcript
def test_a_transcript_names_no_folder_of_the_machine_that_recorded_it(path: Path) -> None:
    folders = re.findall(r'(?<=["\s:])/[\w.-]+/[\w.-]+', path.read_text("utf-8"))

    assert set(folders) <= {HOME, *EVERYWHERE}


def test_rpc_discover_answers_the_committed_document(sidecar: Sidecar) -> None:
    assert sidecar.call("rpc.discover") == json.loads((PROTOCOL / "openrpc.json").read_text("utf-8"))


def _processes(lines: list[Json]) -> Iterator[list[Json]]:
    """The lines of each process, beginning with its setup."""
    starts = [number for number, line in enumerate(lines) if line["from"] == "setup"]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:end]


def _start(spawn: Spawner, setup: Json) -> Sidecar:
    lay_out(spawn.folder, setup)
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
    """Wait until the message has come; what answers and requests teach is needed by later lines of the client."""
    method = message.get("method")
    if method == "event":
        event = message["params"]
        sidecar.wait_event(event["sessionId"], lambda seen: seen["seq"] >= event["seq"])
    elif method is not None:
        asked = sidecar.wait_frame(lambda seen: _names_the_same(message, seen))
        assert play.difference(message, asked) is None
    elif message["id"] is not None:
        assert play.difference(message, sidecar.answer(message["id"])) is None


def _names_the_same(message: Json, seen: Json) -> bool:
    """Whether both are the sidecar's request of one id, or the cancelling of it."""
    if message["method"] != seen.get("method"):
        return False
    return bool((message.get("id") or message["params"]["id"]) == (seen.get("id") or seen["params"]["id"]))


def _ids(lines: list[Json]) -> tuple[set[Any], set[Any]]:
    """The ids of the requests of the client, and of the sidecar."""
    asked = [line for line in lines if {"id", "method"} <= line.get("message", {}).keys()]
    client, own = ([line for line in asked if line["from"] == side] for side in ("client", "sidecar"))
    return {line["message"]["id"] for line in client}, {line["message"]["id"] for line in own}
