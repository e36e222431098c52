"""Session continuity, through the pipe: what the session has come to is told once, after a restart or a compaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.fake import FakeProvider
from tests.window.fencing import Fence, fences
from tests.window.room import Json, Room, included, messages, say_tool, sent_text, text_of
from tests.work.workbench import Workbench

LABEL = "resume snapshot"
GOAL = "Port the Zebrawood parser to Python."
MAX_TOKENS = 500


@pytest.fixture
def quiet(bench: Workbench, fake: FakeProvider) -> Room:
    """Never compacted by itself, and nothing comes back by itself: the fake would obey the markers in it."""
    return Room(bench, fake, compaction={"enabled": False}, gates={"retrieval": "never"})


def _work(room: Room, goal: str = GOAL, fill: int = 12) -> None:
    """A goal, a plan, a file, a commit, an error; then so much talk that none of it fits the window."""
    room.ask(f"{goal} [[say=Understood]]")
    steps = [("Read the old one", "completed"), ("Write zebra.py", "in_progress"), ("Test it", "pending")]
    room.ask(say_tool("update_plan", plan=[{"step": step, "status": status} for step, status in steps]))
    room.ask(say_tool("write_file", path="zebra.py", content="VALUE = 1\n"))
    person = "-c user.name=A -c user.email=a@b.c"
    room.ask(say_tool("run_command", command=f"git add . && git {person} commit -m 'Begin the zebra'"))
    room.ask(say_tool("run_command", command="ls /nowhere/at-all"))
    _talk(room, fill)


def _talk(room: Room, turns: int) -> None:
    for number in range(turns):
        room.ask(f"Note {number}: {'fig ' * 400} [[say=Noted {number}]]")


def _told(request: Any) -> list[Fence]:
    """The snapshots in a request."""
    found = [fence for message in messages(request) for fence in fences(text_of(message))[0]]
    return [fence for fence in found if fence.label == LABEL or fence.label.startswith("snapshot ")]


def _ask(room: Room, text: str) -> tuple[Json, Any]:
    """The turn and its first request."""
    before = len(room.asked)
    sent = room.ask(text)
    return sent, room.asked[before]


def _blocks(manifest: Json) -> list[Json]:
    return [one for one in included(manifest) if one["id"] == "snapshot"]


def test_after_a_kill_the_next_request_tells_once_where_the_work_stands(quiet: Room) -> None:
    _work(quiet)
    assert not _blocks(quiet.preview("Go on"))
    quiet.restart()

    preview = quiet.preview("Go on", includeText=True)
    [shown] = _blocks(preview)
    sent, request = _ask(quiet, "Go on [[say=On]]")
    [fence] = _told(request)

    assert (shown["kind"], shown["gate"], shown["label"]) == ("summary", "resumed", LABEL)
    assert shown["tokens"] <= MAX_TOKENS
    assert fence.text in shown["text"]
    for told in (GOAL, "Write zebra.py", "ls /nowhere/at-all", "git commit -m Begin the zebra"):
        assert fence.text.count(told) == 1, told
    assert text_of(messages(request)[-1]).count(LABEL) == 1, "in the tail, with the prompt"
    assert _blocks(quiet.assembled(sent))[0]["gate"] == "resumed"

    sent, request = _ask(quiet, "And on [[say=On]]")
    assert _told(request) == []
    assert sent_text(request).count(f"[{LABEL}: ") == 1, "a line is left where it was"
    assert not _blocks(quiet.assembled(sent))
    assert json.dumps(quiet.refused) == "[]"
