"""What the README shows runs as it stands, against the real sidecar."""

from __future__ import annotations

import json

from tests.support.spawner import Spawner

from .conftest import Folder
from .pages import README, block_with, blocks


def test_the_embedding_example_streams_and_its_second_run_resumes(folder: Folder) -> None:
    (example,) = blocks(README, "python")
    (folder.path / "example.py").write_text(example, "utf-8")
    turn = "completed ['Do not forget this', 'Do not forget this']"

    runs = [folder.run(".venv/bin/python", "example.py").splitlines() for _ in range(2)]

    assert runs == [
        ["created, turns so far: 0", "Do not forget this", turn],
        ["resumed, turns so far: 1", "Do not forget this", turn, turn],
    ]


def test_the_embedding_example_is_at_most_20_lines() -> None:
    (example,) = blocks(README, "python")

    assert len(example.splitlines()) <= 20


def test_the_lines_for_other_languages_bring_what_is_shown(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    lines = block_with(README, "json", "initialize").splitlines()
    requests = [json.loads(line) for line in lines]

    for line, request in zip(lines, requests, strict=True):
        sidecar.referee.asked(request["id"], request["method"], request["params"])
        sidecar.send_bytes(line.encode() + b"\n")
    sent = sidecar.result(requests[-1]["id"])
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    came = [
        f'"result":{{"sessionId":"{sent["sessionId"]}","disposition":"{sent["disposition"]}",',
        *(
            f'"seq":{d["seq"]},"type":"message.delta"'
            for d in sidecar.events(sent["sessionId"], "message.delta")
        ),
        f'"seq":{ended["seq"]},"type":"turn.ended","data":{{"reason":"{ended["data"]["reason"]}",',
    ]
    shown = block_with(README, "text", "turn.ended")
    assert [text for text in came if text not in shown] == []


def test_the_terminal_commands_run_one_after_the_other(folder: Folder) -> None:
    script = block_with(README, "sh", "sidecar chats")

    printed = folder.run("sh", "-e", "-c", script)

    assert printed.startswith("Where were we?\nWhat happened on this day?\n")
    assert '"openrpc"' in printed
    assert (folder.path / "thesis.jsonl").exists()


def test_what_an_app_spawns_leaves_at_the_end_of_its_input(folder: Folder) -> None:
    assert folder.run("sh", "-e", "-c", block_with(README, "sh", "sidecar serve")) == ""
