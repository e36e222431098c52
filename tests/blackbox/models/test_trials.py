"""The models for trying things out report what a real model does: requests, windows, images, retries."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pictures import png
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


def play(spawn: Spawner, *replies: dict[str, Any], name: str = "script.json") -> Sidecar:
    path = spawn.folder / name
    path.write_text(json.dumps(list(replies)))
    return spawn(model=f"scripted:{path}")


@pytest.mark.parametrize("kind", ["echo", "scripted"])
@pytest.mark.parametrize("window", [None, 50_000])
def test_a_request_is_reported_before_its_answer(spawn: Spawner, kind: str, window: int | None) -> None:
    sidecar = spawn() if kind == "echo" else play(spawn, {"match": "", "steps": [{"text": "Hi"}]})
    sidecar.call("chat/open", chatId="c", config={"window": window} if window else {})
    ended = sidecar.run("Hello there", chatId="c")
    types = [event["type"] for event in sidecar.journal(ended["sessionId"])]
    assert types.index("context.assembled") < types.index("message.started")
    (event,) = sidecar.events(ended["sessionId"], "context.assembled")
    assert event["data"]["window"] == window
    assert "prompt" in [block["kind"] for block in event["data"]["blocks"]]
    (usage,) = sidecar.events(ended["sessionId"], "usage.updated")
    assert "window" in usage["data"]
    assert (usage["data"]["window"] is None) == (window is None)


def test_every_request_of_a_turn_is_reported(spawn: Spawner, tmp_path: Path) -> None:
    call = {"toolCall": {"name": "list_dir", "input": {"path": "."}}}
    sidecar = play(spawn, {"steps": [call, {"text": "Seen"}]})
    ended = sidecar.run("Look", chatId="c", projectPath=str(tmp_path))
    events = sidecar.events(ended["sessionId"], "context.assembled")
    assert [[block["id"] for block in event["data"]["blocks"]] for event in events] == [
        ["prompt"],
        ["prompt", "steps"],
    ]
    assert events[0]["data"]["used"] < events[1]["data"]["used"]


@pytest.mark.parametrize("kind", ["echo", "scripted"])
def test_an_image_that_the_model_does_not_get_is_noticed(spawn: Spawner, kind: str) -> None:
    sidecar = spawn() if kind == "echo" else play(spawn, {"match": "", "steps": [{"text": "Hi"}]})
    picture = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    sent = sidecar.call(
        "prompt/send", chatId="c", promptId="p", content=[{"type": "text", "text": "See"}, picture]
    )
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    (notice,) = sidecar.events(sent["sessionId"], "notice")
    assert (notice["data"]["code"], notice["data"]["params"]["count"]) == ("media_left_out", 1)
    (event,) = sidecar.events(sent["sessionId"], "context.assembled")
    assert [block["kind"] for block in event["data"]["blocks"]] == ["attachments", "prompt"]
    for number, content in enumerate(([picture], [{"type": "text", "text": "And now?"}])):
        sent = sidecar.call("prompt/send", chatId="c", promptId=f"p{number}", content=content)
        sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    notices = sidecar.events(sent["sessionId"], "notice")
    assert len(notices) == 2, "a prompt that brings it again is news, its history is not"


def test_a_script_that_fails_once_is_retried_by_itself(spawn: Spawner) -> None:
    fault = {"error": {"reason": "overloaded", "retryAfterMs": 10}}
    sidecar = play(spawn, {"regex": "^try", "steps": [fault]}, {"regex": "^try", "steps": [{"text": "Now"}]})
    ended = sidecar.run("try this", chatId="c")
    assert ended["data"]["reason"] == "end_turn"
    (error,) = sidecar.events(ended["sessionId"], "error")
    assert (error["data"]["willRetry"], error["data"]["attempt"]) == (True, 1)


def test_a_script_that_has_nothing_else_fails_at_once(spawn: Spawner) -> None:
    sidecar = play(spawn, {"match": "", "steps": [{"error": {"reason": "overloaded"}}]})
    ended = sidecar.run("try this", chatId="c")
    assert ended["data"]["error"]["data"]["reason"] == "overloaded"
    assert sidecar.events(ended["sessionId"], "error") == []
