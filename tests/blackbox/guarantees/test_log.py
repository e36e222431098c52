"""What `--log-level info` tells a person who debugs an app: requests, turns, tools and storage, never a text."""

from __future__ import annotations

import json

import pytest

from tests.support.spawner import COMMAND, Spawner

own_command = pytest.mark.skipif(COMMAND[1:2] != ["-m"], reason="about this program's own log")
CANARY = "xyzzycanary"
SCRIPT = {
    "replies": [
        {
            "regex": "^break$",
            "steps": [{"error": {"reason": "quota", "message": CANARY, "retryable": False}}],
        },
        {
            "regex": "",
            "steps": [
                {"toolCall": {"name": "no_such_tool", "input": {"queries": [CANARY]}}},
                {"text": CANARY},
            ],
        },
    ]
}


def lines(spawn: Spawner, *flags: str) -> list[dict[str, object]]:
    """The log of a session with an answered prompt, a failed one and two refused requests."""
    path = spawn.folder / "script.json"
    path.write_text(json.dumps(SCRIPT))
    sidecar = spawn(*flags, model=f"scripted:{path}")
    sidecar.run(f"hello {CANARY}", chatId="c1")
    sidecar.run("break", chatId="c1")
    sidecar.refused("chat/history", chatId="c1", turnId=[CANARY])
    sidecar.refused("chat/nothing", text=CANARY)
    sidecar.close_stdin()
    sidecar.wait()
    return sidecar.log_lines()


@own_command
def test_info_names_each_request_turn_and_tool_and_the_storage(spawn: Spawner) -> None:
    log = lines(spawn, "--log-level", "info")
    requests = [line for line in log if line["message"] == "request"]
    sent = next(line for line in requests if line["method"] == "prompt/send")
    assert (sent["chat"], sent.get("error")) == ("c1", None)
    assert isinstance(sent["ms"], float)
    assert ("chat/history", "invalid_params") in [(line["method"], line.get("error")) for line in requests]
    assert ("chat/nothing", "method_not_found") in [(line["method"], line.get("error")) for line in requests]
    began = [line for line in log if line["message"] == "turn started"]
    ended = [line for line in log if line["message"] == "turn ended"]
    assert [line["turn"] for line in began] == [line["turn"] for line in ended]
    assert "end_turn" in [line["reason"] for line in ended]
    assert all(line["chat"] == "c1" and line["model"] and isinstance(line["ms"], int) for line in ended)
    tool = next(line for line in log if line["message"] == "tool ended")
    assert (tool["tool"], tool["status"], tool["chat"]) == ("no_such_tool", "failed", "c1")
    assert isinstance(tool["ms"], int)
    assert [line.get("error") for line in ended] == [None, "provider_error"]
    assert {"message": "storage", "state": "ready"}.items() <= next(
        line for line in log if line["message"] == "storage"
    ).items()


@own_command
def test_info_holds_no_text(spawn: Spawner) -> None:
    log = lines(spawn, "--log-level", "info")
    assert len(log) > 5
    assert CANARY not in json.dumps(log)


@own_command
def test_without_info_nothing_is_logged_of_them(spawn: Spawner) -> None:
    wanted = {"request", "turn started", "turn ended", "tool ended", "storage"}
    assert not [line for line in lines(spawn) if line["message"] in wanted]
