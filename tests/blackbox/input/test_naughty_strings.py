"""Naughty strings in every place of every method where text may stand: one answer, and nothing breaks."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from sidecar_protocol.catalog import METHODS

from tests.support.wire import Json

from .generated import Place, holds_text, places, whole, with_value
from .probe import Probe

NAUGHTY: list[str] = json.loads((Path(__file__).parent / "corpus" / "naughty.json").read_text())
ASKED = [name for name in METHODS if name not in ("initialize", "shutdown")]


RIVALS = {"sessionId": {"chatId", "projectPath"}, "content": {"text"}, "ref": {"blobId"}, "path": {"data"}}
"""What must not stand beside a member."""


def base(method: str, place: Place) -> Json:
    """The example of the table, with what `place` needs around it and nothing that it excludes."""
    top = str(place.path[0])
    example = {k: v for k, v in METHODS[method].example.items() if k not in RIVALS.get(top, ())}
    return {**example, top: whole(method)[top]}


def test_there_are_at_least_60_strings() -> None:
    assert len(set(NAUGHTY)) >= 60


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ASKED)
def test_naughty_strings_are_answered_in_every_place(probe: Probe, method: str) -> None:
    for place in places(method):
        if holds_text(place.type):
            many = [with_value(base(method, place), place.path, text) for text in NAUGHTY]
            for params, answer in probe.ask_all(method, many):
                code = answer.get("error", {}).get("code")
                assert code != -32603, f"{place.path} {params!r:.200}: {answer!r:.500}"


def test_naughty_strings_come_back_unaltered_from_echo(probe: Probe) -> None:
    asked = probe.ask_all(
        "prompt/send",
        [
            {"chatId": f"naughty {n}", "promptId": f"p{n}", "text": text}
            for n, text in enumerate(NAUGHTY)
            if text.strip()
        ],
    )
    for params, answer in asked:
        sent = answer["result"]
        probe.sidecar.wait_turn(sent["sessionId"], sent["turnId"])
        (done,) = probe.sidecar.events(sent["sessionId"], "message.completed")
        assert done["data"]["item"]["text"] == params["text"]


def test_naughty_titles_come_back_unaltered(probe: Probe) -> None:
    probe.sidecar.call("chat/open", chatId="titles")
    for text in NAUGHTY:
        if text.strip() and len(text) < 200:
            probe.sidecar.call("chat/rename", chatId="titles", title=text)
            assert probe.sidecar.call("chat/open", chatId="titles")["title"] == text


def test_naughty_ids_name_chats_of_their_own(probe: Probe) -> None:
    names = {unicodedata.normalize("NFC", text) for text in NAUGHTY}
    names = {name for name in names if 0 < len(name.encode()) <= 512}
    opened = probe.ask_all("chat/open", [{"chatId": name, "namespace": "ids"} for name in sorted(names)])
    assert {answer["result"]["chatId"] for _, answer in opened} == names
    assert len({answer["result"]["sessionId"] for _, answer in opened}) == len(names)


def test_naughty_strings_are_ids_of_requests(probe: Probe) -> None:
    for text in NAUGHTY:
        message = {"jsonrpc": "2.0", "id": text, "method": "ping"}
        (answer,) = probe.answers(json.dumps(message).encode() + b"\n", wanted=1)
        assert answer["id"] == text
