"""`[project] files`: two files about the chats of a project, in the project, for those who asked for them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox.work.workbench import Workbench, call
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .database_files import CANARY, folder

LOOK_S = 0.02
"""How often a file is looked at that is written beside the chat."""


def asking(spawn: Spawner, model: str = "echo:") -> Sidecar:
    config = spawn.folder / "files.toml"
    config.write_text("[project]\nfiles = true\n")
    return spawn("--config", str(config), model=model)


def wait_for(path: Path, ready: Callable[[str], bool]) -> str:
    """The file's text, once it is as it should be."""
    end = time.monotonic() + PATIENCE_S
    text = ""
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        if text and ready(text):
            return text
        time.sleep(LOOK_S)
    raise AssertionError(f"{path.name} is not as it should be: {text!r:.2000}")


def test_both_files_are_there_after_a_turn(bench: Workbench) -> None:
    model = bench.script([[call("write_file", path="new.txt", content="looms\n")], "Done."])
    sidecar = asking(bench.spawn, model)
    bench.open(sidecar)
    sidecar.run("Weave the looms", chatId="c")
    events = wait_for(bench.project / ".context/events.md", lambda text: "new.txt" in text)
    assert "Weave the looms" in events
    assert ".gitignore" in events.splitlines()[0]
    stats = json.loads(wait_for(bench.project / ".context/stats.json", lambda text: '"turns": 1' in text))
    asked = sidecar.call("stats/read", scope="project", projectPath=str(bench.project))
    assert (stats["writtenBy"], stats["scope"], stats["turns"]) == ("sidecar", "project", 1)
    assert stats["tools"] == asked["tools"]


def test_every_chat_has_a_section_and_a_purged_one_loses_it(spawn: Spawner) -> None:
    sidecar, project = asking(spawn), folder(spawn, "project")
    events = project / ".context/events.md"
    for chat, words in (("a", CANARY), ("b", "warp"), ("a", f"{CANARY} again")):
        session = sidecar.run(words, chatId=chat, projectPath=str(project))["sessionId"]
        wait_for(events, lambda text, session=session: text.find(session) == text.find("sc-"))  # type: ignore[misc]
    assert events.read_text().count("<!-- chat sc-") == 2
    sidecar.call("data/purge", chatId="a", confirm=True)
    sidecar.run("weft", chatId="b", projectPath=str(project))
    assert CANARY not in wait_for(events, lambda text: "weft" in text)


def test_nothing_is_written_unless_it_was_asked_for(spawn: Spawner) -> None:
    sidecar, silent, loud = spawn(), folder(spawn, "silent"), folder(spawn, "loud")
    sidecar.run("hello", chatId="a", projectPath=str(silent))
    (silent / ".sidecar").mkdir()
    (silent / ".sidecar/config.toml").write_text("[project]\nfiles = true\n")
    sidecar.call("settings/write", scope="user", set={"titles": "words"})
    sidecar.run("the project asks, and nobody trusts it", chatId="a")
    other = asking(spawn)
    other.run("hello", chatId="b", projectPath=str(loud))
    wait_for(loud / ".context/events.md", lambda text: "hello" in text)
    assert not (silent / ".context").exists()
    sidecar.call("project/trust", path=str(silent), trusted=True)
    sidecar.run("now somebody does", chatId="a")
    wait_for(silent / ".context/events.md", lambda text: "now somebody does" in text)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_not_ours_is_left_alone(spawn: Spawner, kind: str) -> None:
    sidecar, project, outside = asking(spawn), folder(spawn, "project"), folder(spawn, "outside")
    if kind == "file":
        (folder(spawn, "project/.context") / "events.md").write_text("my own notes\n")
    elif kind == "link":
        (project / ".context").symlink_to(outside)
    else:
        (outside / "events.md").write_text("theirs\n")
        (folder(spawn, "project/.context") / "events.md").symlink_to(outside / "events.md")
    sidecar.run("hello", chatId="c", projectPath=str(project))
    _logged(sidecar)
    left = sorted(path.name for path in outside.iterdir())
    assert left == (["events.md"] if kind == "folder" else [])
    if kind == "file":
        assert (project / ".context/events.md").read_text() == "my own notes\n"
    if kind == "folder":
        assert (outside / "events.md").read_text() == "theirs\n"


def _logged(sidecar: Sidecar) -> None:
    end = time.monotonic() + PATIENCE_S
    while not any("were not written" in line.get("message", "") for line in sidecar.log_lines()):
        assert time.monotonic() < end, sidecar.log_lines()
        time.sleep(LOOK_S)


def test_the_file_stays_small_and_readable(spawn: Spawner) -> None:
    sidecar, project = asking(spawn), folder(spawn, "project")
    events = project / ".context/events.md"
    for number in range(12):
        words = f"Goal {number}: " + f"always weave number{number} with care and never stop. " * 200
        session = sidecar.run(words, chatId=f"c{number}", projectPath=str(project))["sessionId"]
        wait_for(events, lambda text, session=session: session in text)  # type: ignore[misc]
    assert os.stat(events).st_size <= 64 * 1024
    assert events.read_text().count("<!-- chat sc-") >= 7
