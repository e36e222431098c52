"""The example for Python: a user types at it, ends it, and finds the chat again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner

EXAMPLE = Path(__file__).parents[3] / "clients" / "examples" / "python" / "chat.py"


def _type(spawn: Spawner, text: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "tab-7"],
        input=text,
        env=spawn.environment(),
        cwd=spawn.folder,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_user_gets_answers_and_finds_the_chat_again(spawn: Spawner) -> None:
    first = _type(spawn, "Hello there\n/open:list\n")
    second = _type(spawn, "")

    assert first.splitlines() == ["created: tab-7, 0 turns", "> Hello there", "> No files are open.", "> "]
    assert second.splitlines()[0] == "resumed: Hello there, 1 turns"


def test_the_example_has_sixty_lines() -> None:
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 60
