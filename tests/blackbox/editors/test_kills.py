"""The process killed at random points of a session: `session/load` replays what was shown, and nothing twice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.scripts import write_script
from tests.support.wire import Json

from .conftest import Start
from .editor import Editor

SEED = int(os.environ.get("SIDECAR_CRASH_SEED", "7"))
LONGEST = 30
"""The turn of `slow` has about as many frames: a kill comes anywhere in it, or just after."""


def texts(updates: list[Json]) -> dict[str, str]:
    """What each message says, by its id; a replay names each message once."""
    found: dict[str, str] = {}
    for each in updates:
        if "messageId" in each["update"]:
            id = each["update"]["messageId"]
            found[id] = found.get(id, "") + each["update"]["content"]["text"]
    return found


def replayed(editor: Editor, session: str) -> dict[str, str]:
    before = len(editor.updates)
    editor.load(session)
    updates = editor.stored(before)
    ids = [each["update"]["messageId"] for each in updates if "messageId" in each["update"]]
    assert len(ids) == len(set(ids)), "a message was replayed twice"
    return texts(updates)


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_session_survives_kills_at_random_points(start: Start, tmp_path: Path, kills: int) -> None:
    rng, model = random.Random(SEED), write_script(tmp_path)
    shown: dict[str, str] = {}
    editor = start(model=model)
    session = editor.new("tab-7")
    for number in range(kills):
        began = len(editor.updates)
        own = {"_meta": {"sidecar": {"promptId": f"p{number}"}}}
        editor.send_prompt(session, "slow", **own)
        last = rng.randrange(1, LONGEST)
        editor.wait_updates(began + last, unless_answered=True)
        editor.kill()
        live = texts(editor.stored(began))

        editor = start(model=model)
        found = replayed(editor, session)

        assert list(found)[: len(shown)] == list(shown), "the order of messages changed"
        assert {id: found[id] for id in shown} == shown, "a message changed after its turn had ended"
        lost = {id: text for id, text in live.items() if not found.get(id, "").startswith(text)}
        assert not lost, "what was shown is gone"
        editor.prompt(session, "slow", **own)  # answered at once: it has run already
        shown = replayed(editor, session)
        assert sum(text == "slow" for text in shown.values()) == number + 1
