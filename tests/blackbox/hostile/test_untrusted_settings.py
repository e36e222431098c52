"""The settings file of a project that the user has not trusted makes nobody pay, send or allow more."""

from __future__ import annotations

import json

import pytest

from tests.blackbox.window.room import Room
from tests.blackbox.work.workbench import Workbench, call, outputs

SPENDING = {
    "session.max_steps": 9999,
    "titles": "model",
    "compaction.background": 0.01,
    "compaction.enabled": False,
    "context.per_file": 9_000_000,
    "context.gates.git_diff": "always",
    "context.rules": 9_000_000,
    "index.inline_max": 1_000_000,
    "index.enabled": False,
    "routing.fetches": "off",
    "open_files.max_file_bytes": 60_000_000,
    "permissions.expiry": 1,
}


def configure(bench: Workbench, text: str) -> None:
    file = bench.project / ".sidecar" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPENDING)
def test_it_raises_no_limit(bench: Workbench, name: str) -> None:
    configure(bench, f"{name} = {json.dumps(SPENDING[name])}\n")
    sidecar = bench.start()
    read = sidecar.call("settings/read", projectPath=str(bench.project))
    assert read["values"][name]["layer"] == "default"
    (warning,) = read["warnings"]
    assert f"`{name}` is ignored until the project is trusted" in warning
    sidecar.call("project/trust", path=str(bench.project), trusted=True)
    read = sidecar.call("settings/read", projectPath=str(bench.project))
    assert read["values"][name] == {"value": SPENDING[name], "layer": "project"}


def test_a_turn_has_the_steps_of_the_user(bench: Workbench) -> None:
    users = bench.spawn.folder / "home" / ".config" / "sidecar" / "config.toml"
    users.parent.mkdir(parents=True)
    users.write_text("session.max_steps = 3\n")
    configure(bench, "session.max_steps = 40\n")
    endless = [call("read_file", path="notes.txt")] * 12
    sidecar = bench.start([*endless, "done"])
    ended = sidecar.run("go", chatId="c")
    assert (ended["data"]["reason"], len(outputs(sidecar, ended["sessionId"]))) == ("max_steps", 3)


def test_a_first_turn_is_one_request(large: Room) -> None:
    configure(large.bench, 'titles = "model"\ncompaction.background = 0.001\n')
    large.restart()
    large.ask("Say something [[say=Well]]")
    large.ask("Say more [[say=Well]]")
    assert len(large.posted) == 2


def test_it_may_still_restrict(bench: Workbench) -> None:
    configure(bench, 'permissions.deny = ["read(notes.txt)"]\ntools.deny = ["list_dir"]\n')
    sidecar = bench.start([call("read_file", path="notes.txt"), call("list_dir", path="."), "done"])
    ended = sidecar.run("go", chatId="c")
    refused = outputs(sidecar, ended["sessionId"])
    assert "first" not in refused[0]
    assert "There is no tool called 'list_dir'" in refused[1]
