"""Images that a tool of the app or of an MCP server returns, over every API: the model is shown them as its API takes
them, the app gets them by their blob, and none keeps a chat from going on."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.fake_provider import DEFAULT_MODELS, FakeProvider, Model, in_thread
from tests.blackbox.models.talk import Json, Talk
from tests.blackbox.models.test_media import encoded, left_out
from tests.blackbox.work.workbench import wait_ready
from tests.support import pictures as p

pytestmark = pytest.mark.sampled(2)

MCP_PROGRAM = str(Path(__file__).parents[2] / "unit" / "tools" / "mcp" / "plain_server.py")

CAMERA = {
    "name": "camera",
    "description": "Takes a picture.",
    "inputSchema": {"type": "object"},
    "kind": "read",
}
LOOK = "[[say=Looking]] [[tool=camera:{}]]"


def text(text: str) -> Json:
    return {"type": "text", "text": text}


def answer(talk: Talk, *content: Any, error: bool = False) -> None:
    """What the app answers from now on when the model calls its tool."""
    talk.sidecar.call("tools/offer", tools=[CAMERA])
    talk.sidecar.answering["tool/call"] = lambda params: {"content": list(content), "isError": error}


def call(talk: Talk, **params: Any) -> Json:
    """The item of a call of the tool, in a turn that ends well."""
    sent = talk.send("c", LOOK, **params)
    assert talk.end(sent)["reason"] == "end_turn"
    (item,) = talk.items(sent, "tool")
    return item


def body(talk: Talk) -> str:
    return talk.asked[-1].body.decode()


@pytest.mark.parametrize("error", [False, True], ids=["result", "error"])
def test_an_image_of_a_tool_reaches_the_model_and_the_app(error: bool, talk: Talk) -> None:
    answer(talk, text("the garden"), p.block(p.png(), "image/jpeg", name="cam.png"), error=error)
    item = call(talk)

    blob = {"type": "image", "mimeType": "image/png", "name": "cam.png", "size": len(p.png())}
    blob["blobId"] = hashlib.sha256(p.png()).hexdigest()
    (shown,) = item["output"]["content"]
    read = talk.sidecar.call("blob/read", blobId=shown["blobId"])
    assert (shown, base64.b64decode(read["data"])) == (blob, p.png())
    assert "the garden" in item["output"]["text"]
    assert ("the garden" in body(talk), body(talk).count(encoded(p.png()))) == (True, 1)
    assert (len(talk.asked), left_out(talk)) == (2, [])

    assert talk.ask("[[say=more]]")["reason"] == "end_turn"
    assert body(talk).count(encoded(p.png())) == 1, "the history has lost the image"
    history = talk.sidecar.call("chat/history", chatId="c")
    (again,) = [i for turn in history["turns"] for i in turn["items"] if i["type"] == "tool"]
    assert again == item
    assert encoded(p.png()) not in json.dumps(history)


@pytest.mark.sampled(1)
def test_an_image_of_an_mcp_server_reaches_the_model(talk: Talk) -> None:
    server = {"name": "plain", "command": sys.executable, "args": [MCP_PROGRAM, "work"]}
    talk.sidecar.call("chat/open", chatId="c")
    talk.sidecar.call("chat/configure", chatId="c", set={"mcpServers": [server], "mode": "auto"})
    wait_ready(talk.sidecar)
    sent = talk.send("c", "[[say=Looking]] [[tool=mcp__plain__photo:{}]]")
    assert talk.end(sent)["reason"] == "end_turn"

    (item,) = talk.items(sent, "tool")
    read = talk.sidecar.call("blob/read", blobId=item["output"]["content"][0]["blobId"])
    assert encoded(base64.b64decode(read["data"])) in body(talk)


def test_images_of_several_calls_are_all_shown(talk: Talk) -> None:
    answer(talk, p.block(p.png()), p.block(p.jpeg()))
    sent = talk.send("c", "[[tool=camera:{}]] [[tool=camera:{}]]")
    assert talk.end(sent)["reason"] == "end_turn"
    assert [body(talk).count(encoded(data)) for data in (p.png(), p.jpeg())] == [2, 2]


def test_a_model_without_images_gets_a_line_and_the_user_a_notice(talk: Talk) -> None:
    answer(talk, text("the garden"), p.block(p.png(), name="cam.png"))
    blind: Json = {"overrides": {"model": f"{talk.provider}:fake-blind"}}
    call(talk, **blind)
    assert "cam.png is not shown" in body(talk)
    assert encoded(p.png()) not in body(talk)
    assert left_out(talk) in (["refused"], ["modality"])
    requests = len(talk.asked)
    assert talk.ask("[[say=more]]", **blind)["reason"] == "end_turn"
    assert (len(talk.asked) - requests, len(left_out(talk))) == (1, 1), "it was refused, or reported, again"
    assert talk.ask("[[say=back]]")["reason"] == "end_turn"
    assert encoded(p.png()) in body(talk)


BROKEN = {
    "truncated": p.block(p.png()[:-20]),
    "no image": p.block(b"BM" + bytes(60)),
    "no base64": {"type": "image", "mimeType": "image/png", "data": "%%%"},
    "empty": {"type": "image", "mimeType": "image/png", "data": ""},
    "without bytes": {"type": "image", "mimeType": "image/png"},
    "wrong types": {"type": "image", "mimeType": 7, "data": ["x"], "name": {}},
    "relative path": {"type": "image", "path": "picture.png"},
    "no such file": {"type": "image", "path": "/nonexistent/picture.png"},
    "bomb": p.block(p.png(30_000, 30_000, pixels=b"x")),
}


@pytest.mark.parametrize("block", BROKEN.values(), ids=BROKEN)
def test_a_broken_image_is_a_line_and_a_notice_and_never_sent(block: Json, talk: Talk) -> None:
    answer(talk, text("the garden"), block, p.block(p.jpeg()))
    item = call(talk)

    assert item["status"] == "completed"
    assert [one["mimeType"] for one in item["output"]["content"]] == ["image/jpeg"]
    assert "image 1 of this result is left out" in item["output"]["text"]
    assert "image 1 of this result is left out" in body(talk)
    assert left_out(talk) == ["invalid"]
    (told,) = [e["data"] for seen in talk.sidecar.seen().values() for e in seen if e["type"] == "notice"]
    assert (told["params"]["itemId"], told["params"]["tool"]) == (item["id"], "camera")
    assert talk.ask("[[say=more]]")["reason"] == "end_turn"
    assert [one.rule for one in talk.asked] == [None] * 3


def test_a_missing_blob_is_named(talk: Talk) -> None:
    answer(talk, {"type": "image", "blobId": "0" * 64})
    assert "does not exist" in call(talk)["output"]["text"]
    assert left_out(talk) == ["missing"]


def test_more_images_than_a_request_takes_are_left_out(talk: Talk) -> None:
    answer(talk, *[p.block(p.png(width=at)) for at in range(1, 25)])
    item = call(talk)
    assert (len(item["output"]["content"]), left_out(talk)) == (20, ["size"] * 4)


def test_an_animation_is_sent_as_its_first_frame(talk: Talk) -> None:
    answer(talk, p.block(p.gif(3), "image/gif"))
    call(talk)
    taken = talk.api != "gemini"
    assert (encoded(p.gif(1)) in body(talk), left_out(talk)) == (taken, [] if taken else ["format"])


ABILITIES: dict[str, list[bool | None]] = {
    "openai-chat": [None, None, None],
    "openai-responses": [None, None, None],
    "anthropic": [None, True, True],
    "gemini": [None, True, None],
    "ollama": [True, True, True],
}
"""Whether a model of the fake calls tools, thinks and takes images, as far as its API says so."""


def test_models_say_what_they_can_do(talk: Talk) -> None:
    listed = talk.sidecar.call("models/list", provider=talk.provider)["items"]
    found = {item["id"].removesuffix(":latest"): item for item in listed}
    able = [[item[name] for name in ("tools", "thinking", "images")] for item in found.values()]
    assert all(len(one) == 3 for one in able)
    (first,) = [item for id, item in found.items() if id.endswith(":fake-1")]
    assert [first[name] for name in ("tools", "thinking", "images")] == ABILITIES[talk.api]
    if talk.api == "ollama":
        (plain,) = [item for id, item in found.items() if id.endswith(":fake-plain")]
        assert [plain[name] for name in ("tools", "thinking", "images")] == [False, False, False]


class TestGemini3:
    """Models that take images within a function response get them there."""

    @pytest.fixture
    def fake(self) -> Iterator[FakeProvider]:
        with in_thread(models=[*DEFAULT_MODELS, Model("gemini-3.5-flash")]) as fake:
            yield fake

    @pytest.fixture
    def api(self) -> str:
        return "gemini"

    def test_an_image_is_part_of_the_function_response(self, talk: Talk) -> None:
        answer(talk, p.block(p.png()))
        call(talk, overrides={"model": "gemini:gemini-3.5-flash"})
        (part,) = json.loads(body(talk))["contents"][-1]["parts"]
        (image,) = part["functionResponse"]["parts"]
        assert image["inlineData"] == {"mimeType": "image/png", "data": encoded(p.png())}
