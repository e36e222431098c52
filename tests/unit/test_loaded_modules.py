"""Which modules `sidecar serve` has loaded when it answers: start-up stays as light as the committed lists say.

`python -m tests.unit.test_loaded_modules` writes the lists again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import module_recorder
from tests.support.spawner import Spawner

LISTS = Path(__file__).parent / "loaded_modules"
REGENERATE = ".venv/bin/python -m tests.unit.test_loaded_modules"

SCRIPT = [{"steps": [{"text": "Hello"}, {"hang": True}]}]
"""One token and then nothing, so that nothing that follows a token is loaded while the token is on its way."""

CHATS: dict[str, dict[str, Any]] = {
    "first_token": {},
    "first_token_in_window": {"window": 100_000},
}
"""The configuration of a chat, by the list of what is loaded before its first token. With a window the request is
assembled as for a model that reads the history."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lists are those of Linux")


def loaded_modules(folder: Path, config: dict[str, Any]) -> dict[str, list[str]]:
    """What a new process has loaded when it answers `initialize`, when it answers `chat/open`, and when it sends the
    first token of a chat in a project."""
    recorded, project = folder / "recorded", folder / "project"
    recorded.mkdir()
    project.mkdir()
    (project / "notes.txt").write_text("A line\n", "utf-8")
    (folder / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    spawn = Spawner(folder, [sys.executable, module_recorder.__file__, str(recorded), "serve"])
    try:
        sidecar = spawn(model=f"scripted:{folder / 'script.json'}")
        opened = sidecar.call("chat/open", chatId="tab-1", projectPath=str(project), config=config)
        sidecar.say("Hello", chatId="tab-1")
        sidecar.wait_event(opened["sessionId"], "message.delta")
    finally:
        spawn.settle()
    return {path.stem: path.read_text("utf-8").split() for path in recorded.iterdir()}


def measure(folder: Path, name: str) -> dict[str, list[str]]:
    """The lists of one process, its last one under `name`."""
    found = loaded_modules(folder, CHATS[name])
    return {name if moment == module_recorder.FIRST_TOKEN else moment: found[moment] for moment in found}


def committed(name: str) -> list[str]:
    return (LISTS / f"{name}.txt").read_text("utf-8").split()


def difference(name: str, found: list[str]) -> str:
    """How a list differs from the committed one; empty when it does not."""
    expected = committed(name)
    more = [f"+ {module}" for module in found if module not in expected]
    less = [f"- {module}" for module in expected if module not in found]
    return "\n".join([f"{name}: if this is meant, run {REGENERATE}", *more, *less]) if more or less else ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CHATS)
def test_the_modules_loaded_at_each_step_are_those_listed(tmp_path: Path, name: str) -> None:
    found = measure(tmp_path, name)

    assert sorted(found) == sorted([*module_recorder.ANSWERS, name])
    differences = "\n".join(filter(None, (difference(step, found[step]) for step in found)))
    assert not differences, differences


def test_each_list_holds_the_one_before_it() -> None:
    steps = ["initialize", "chat_open", "first_token", "first_token_in_window"]

    assert [set(committed(a)) < set(committed(b)) for a, b in pairwise(steps)] == [True, True, True]


@pytest.mark.parametrize(
    "module", ["anyio", "msgspec", "aiosqlite", "sidecar.server.server", "sidecar.store.store"]
)
def test_initialize_is_answered_before_the_program_is_loaded(module: str) -> None:
    assert module not in committed("initialize")


@pytest.mark.parametrize(
    "package",
    ["tiktoken", "mcp", "rich", "yaml", "tomlkit", "keyring", "h11", "idna", "xllamacpp", "httptools"],
)
def test_a_first_token_waits_for_no_heavy_package(package: str) -> None:
    assert package not in committed("first_token_in_window")


def test_a_difference_names_the_modules_and_the_command() -> None:
    first, *others = committed("initialize")

    assert difference("initialize", [first, *others]) == ""
    assert difference("initialize", [*others, "sidecar.new"]) == (
        f"initialize: if this is meant, run {REGENERATE}\n+ sidecar.new\n- {first}"
    )


def regenerate() -> None:
    LISTS.mkdir(exist_ok=True)
    for name in CHATS:
        with tempfile.TemporaryDirectory() as folder:
            for step, modules in measure(Path(folder), name).items():
                (LISTS / f"{step}.txt").write_text("".join(f"{module}\n" for module in modules), "utf-8")


if __name__ == "__main__":
    regenerate()
