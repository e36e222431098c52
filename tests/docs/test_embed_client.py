"""The complete Node client of docs/embed.md: permissions, and a sidecar that dies at various moments."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.wire import Json

from .conftest import Folder
from .pages import EMBED, blocks

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

PROMPT = "Write a greeting to hello.txt"

DYING = """\
#!{python}
import os, subprocess, sys
command = [{python!r}, "-m", "sidecar", *sys.argv[1:]]
if os.path.exists("died"):
    os.execv(command[0], command)
open("died", "w").close()
child = subprocess.Popen(command, stdout=subprocess.PIPE)
for line in child.stdout:
    if {trigger!r} in line:
        child.kill()
        child.wait()
        sys.exit(1)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
"""Forwards what the sidecar writes up to the first line with the trigger, then kills it. Only the first time."""


@pytest.fixture
def app(folder: Folder) -> Folder:
    client, program = blocks(EMBED, "js")
    (folder.path / "sidecar.mjs").write_text(client, "utf-8")
    (folder.path / "app.mjs").write_text(program, "utf-8")
    return folder


def let_it_die_before(folder: Folder, trigger: str) -> None:
    venv = folder.path / ".venv"
    venv.unlink()
    (venv / "bin").mkdir(parents=True)
    program = venv / "bin" / "sidecar"
    program.write_text(DYING.format(python=sys.executable, trigger=trigger.encode()), "utf-8")
    program.chmod(0o755)


def stored_turns(folder: Folder) -> list[tuple[str, str]]:
    """What is stored of the chat: the prompt of each turn, and what the program prints of it."""
    exported = folder.run(sys.executable, "-m", "sidecar", "export", "tab-7")
    found = [json.loads(line)["turn"] for line in exported.splitlines()[1:]]
    return [(_text(turn, "user"), f"{_text(turn, 'message')} [{turn['reason']}]\n") for turn in found]


def _text(turn: Json, kind: str) -> str:
    return "".join(item["text"] for item in turn["items"] if item["type"] == kind)


def test_the_change_is_shown_and_made_after_the_permission(app: Folder) -> None:
    call = {"toolCall": {"name": "write_file", "input": {"path": "hello.txt", "content": "Hello\n"}}}
    script = [{"steps": [{"text": "Of course. "}, call, {"text": "Done."}]}]
    (app.path / "replies.json").write_text(json.dumps(script), "utf-8")
    app.env["SIDECAR_MODEL"] = "scripted:replies.json"

    printed = app.run("node", "app.mjs")

    assert (app.path / "hello.txt").read_text("utf-8") == "Hello\n"
    assert [
        text for text in ("Write hello.txt\n", "+Hello\n", "Done. [end_turn]\n") if text not in printed
    ] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "trigger",
    ['"instanceId"', '"replay"', '"disposition"', '"prompt.accepted"', '"turn.started"', '"message.started"'],
)
def test_a_sidecar_that_dies_is_restarted_and_the_prompt_runs_once(app: Folder, trigger: str) -> None:
    let_it_die_before(app, trigger)

    printed = app.run("node", "app.mjs")

    assert (app.path / "died").exists()
    assert stored_turns(app) == [(PROMPT, printed)]


def test_a_command_that_does_not_start_is_an_error_with_its_cause(app: Folder) -> None:
    program = (app.path / "app.mjs").read_text("utf-8").replace(".venv/bin/sidecar", "/no/such/program")
    (app.path / "app.mjs").write_text(program, "utf-8")

    done = subprocess.run(
        ["node", "app.mjs"],
        cwd=app.path,
        env=app.env,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 1
    assert "Sidecar died too often" in done.stderr
    assert "/no/such/program ENOENT" in done.stderr
