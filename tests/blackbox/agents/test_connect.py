"""`sidecar connect`: the files of each agent before, connected, and disconnected."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.adapters import connections, jsonc
from sidecar.adapters.base import HookFile
from sidecar.adapters.registry import ADAPTERS
from tests.support.spawner import Spawner

CONNECTABLE = [name for name, adapter in ADAPTERS.items() if adapter.servers]
HOOKED = [name for name, adapter in ADAPTERS.items() if adapter.hooks and adapter.hooks.user]
IN_PROJECT = [name for name in CONNECTABLE if (servers := ADAPTERS[name].servers) and servers.project]

SETTINGS = """\
// settings of the user
{
\t"theme": "dark", // at night

\t"mcpServers": {
\t\t"other": {"command": "other", "args": ["a"]}, /* stays */
\t},
\t"mcp": {"servers": {}}, "context_servers": {}, "servers": {"x": {"type": "stdio"}},
\t"list": [1, 2, {"a": null}],
}
"""

CONTAINERS = SETTINGS.splitlines()[7]
"""The only line that an entry may change: the containers of some agents are on it."""

TOML = """\
# settings of the user
model = "big"  # the best

[mcp_servers.other]
command = "other"

[tui]
theme = "dark"
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, project: Path) -> Run:
    environment = Spawner(tmp_path).environment()

    def run(*arguments: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "sidecar", "connect", *arguments],
            env=environment | variables,
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def server_file(name: str, folder: Path, scope: str = "user") -> Path:
    servers = ADAPTERS[name].servers
    assert servers is not None
    place = servers.user if scope == "user" else servers.project
    assert place is not None
    return folder / place


def entry_in(name: str, path: Path) -> Any:
    servers = ADAPTERS[name].servers
    assert servers is not None
    text = path.read_text()
    found: Any = tomllib.loads(text) if servers.syntax == "toml" else jsonc.parse(text).value
    for key in (*servers.container, "sidecar"):
        found = found[key]
    return found


def hooks_of(name: str) -> HookFile:
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    return hooks


def hook_file(name: str, folder: Path, scope: str = "user") -> Path:
    place = hooks_of(name).user if scope == "user" else hooks_of(name).project
    assert place is not None
    return folder / place


def other_hooks(name: str) -> str:
    """A file of the agent with a hook that is not ours; "" where ours has a file to itself."""
    hooks = hooks_of(name)
    if hooks.own:
        return ""
    if hooks.syntax == "toml":
        return '# mine\n[[hooks]]\nevent = "Stop"\ncommand = "their-own"  # stays\n\n[loop]\nmax = 3\n'
    event = next(iter(hooks.format.events))
    entry = json.dumps(hooks.format.entry(event, "their-own"))
    return f'{{\n  // mine\n  "hooks": {{\n    "{event}": [\n      {entry} // stays\n    ]\n  }}\n}}\n'


def original(name: str) -> str:
    servers = ADAPTERS[name].servers
    assert servers is not None
    return TOML if servers.syntax == "toml" else SETTINGS


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONNECTABLE)
def test_an_existing_file_gets_the_entry_and_is_restored_byte_by_byte(
    run: Run, home: Path, name: str
) -> None:
    path, before = server_file(name, home), original(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before.encode())

    run(name)
    entry, connected = entry_in(name, path), path.read_text()
    run(name)
    again = path.read_text()
    run(name, "--remove")

    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert command[-1] == "mcp"
    assert set(before.splitlines()) - set(connected.splitlines()) <= {CONTAINERS}
    assert again == connected
    assert path.read_bytes() == before.encode()
    assert [each.name for each in path.parent.iterdir() if "before-sidecar" in each.name] == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONNECTABLE)
def test_a_file_that_we_created_is_removed_again(run: Run, home: Path, name: str) -> None:
    path = server_file(name, home)

    run(name)
    assert entry_in(name, path)
    run(name, "--remove")

    assert not path.exists()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONNECTABLE)
def test_of_a_file_that_was_edited_since_only_our_entry_is_removed(run: Run, home: Path, name: str) -> None:
    path = server_file(name, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(original(name))
    run(name)
    edited = path.read_text().replace("dark", "light")
    path.write_text(edited)

    run(name, "--remove")

    left = path.read_text()
    assert "light" in left
    assert "other" in left
    assert "before" not in left
    with pytest.raises(KeyError):
        entry_in(name, path)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HOOKED)
def test_hooks_are_added_beside_others_and_removed_byte_by_byte(run: Run, home: Path, name: str) -> None:
    path, before = hook_file(name, home), other_hooks(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if before:
        path.write_text(before)

    run(name)
    connected = path.read_text()
    run(name)
    again = path.read_text()
    run(name, "--remove")

    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    assert connections.hook_platforms(hooks, connected, str(path)) == {name: len(hooks.format.events)}
    assert "their-own" in connected or not before
    assert again == connected
    assert (path.read_text() if path.exists() else "") == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in HOOKED if not hooks_of(name).own])
def test_of_hooks_that_were_edited_since_only_ours_are_removed(run: Run, home: Path, name: str) -> None:
    path = hook_file(name, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(other_hooks(name))
    run(name)
    path.write_text(path.read_text().replace("their-own", "their-new"))

    run(name, "--remove")

    left = path.read_text()
    assert left == other_hooks(name).replace("their-own", "their-new")


def test_without_hooks_nothing_but_the_server_is_added(run: Run, home: Path) -> None:
    run("claude-code", "--no-hooks")

    assert not hook_file("claude-code", home).exists()
    assert server_file("claude-code", home).exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in IN_PROJECT if ADAPTERS[name].instructions])
def test_a_block_of_instructions_is_written_where_no_hook_gives_the_model_its_text(
    run: Run, project: Path, name: str
) -> None:
    file = project / str(ADAPTERS[name].instructions)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# Rules\n\nBe brief.")

    run(name, "--project")
    with_hooks = file.read_text()
    run(name, "--project", "--remove")
    run(name, "--project", "--no-hooks")
    without_hooks = file.read_text()
    run(name, "--project", "--remove")

    assert ("sidecar: begin" in with_hooks) is (ADAPTERS[name].hooks is None)
    assert without_hooks.startswith("# Rules\n\nBe brief.")
    assert without_hooks.count("sidecar: begin") == 1
    assert file.read_text() == "# Rules\n\nBe brief."
    assert not server_file(name, project, "project").exists()


@pytest.mark.parametrize("name", ["openclaw", "windsurf"])
def test_instructions_for_all_projects_are_written_where_hooks_take_no_text(
    run: Run, home: Path, name: str
) -> None:
    file = home / str(ADAPTERS[name].user_instructions)
    file.parent.mkdir(parents=True)
    file.write_text("# Rules\n")

    run(name)
    connected = file.read_text()
    run(name, "--remove")

    assert connected.startswith("# Rules\n")
    assert connected.count("sidecar: begin") == 1
    assert file.read_text() == "# Rules\n"


def test_hooks_that_another_file_brings_already_are_not_registered_again(
    run: Run, home: Path, project: Path
) -> None:
    run("claude-code", "--project")
    copilot = run("copilot", "--project").stdout
    run("codex")
    codex = run("codex", "--project").stdout

    assert ".claude/settings.json work here too" in copilot
    assert not hook_file("copilot", project, "project").exists()
    assert ".codex/hooks.json work here too" in codex
    assert not hook_file("codex", project, "project").exists()


def test_one_file_that_two_agents_read_has_our_hooks_once(run: Run, home: Path) -> None:
    run("vscode")
    run("claude-code")
    both = hook_file("claude-code", home).read_text()
    run("vscode", "--remove")

    hooks = hooks_of("claude-code")
    assert connections.hook_platforms(hooks, both, "") == {"claude-code": len(hooks.format.events)}
    assert hook_file("claude-code", home).read_text() == both


def test_a_dry_run_shows_the_change_and_writes_nothing(run: Run, home: Path) -> None:
    shown = run("claude-code", "--dry-run").stdout

    assert '"sidecar"' in shown
    assert "Nothing was written" in shown
    assert not (home / ".claude.json").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("claude-code", '{\n "a": 1,\n "b": \n}', 4),
        ("claude-code", "{}\n{}", 2),
        ("cursor", '{"mcpServers": []}', 1),
        ("codex", 'a = 1\nb = "', 2),
        ("zed", "[" * 5000, 1),
        ("gemini-cli", '{"a": "\\ud800"}', 1),
    ],
)
def test_a_file_that_is_not_valid_is_named_and_never_changed(
    run: Run, home: Path, name: str, text: str, line: int
) -> None:
    path = server_file(name, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

    error = run(name, code=1).stderr

    assert f"{path}, line {line}" in error
    assert "Nothing was changed" in error
    assert path.read_text() == text


def test_the_folder_of_an_agent_may_be_moved_by_its_variable(run: Run, tmp_path: Path) -> None:
    run("codex", CODEX_HOME=str(tmp_path / "elsewhere"))

    assert entry_in("codex", tmp_path / "elsewhere/config.toml")


def test_a_link_to_dotfiles_is_followed(run: Run, home: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text("{}")
    (home / ".claude.json").symlink_to(dotfiles)

    run("claude-code")

    assert (home / ".claude.json").is_symlink()
    assert "sidecar" in json.loads(dotfiles.read_text())["mcpServers"]


def test_an_agent_without_such_a_file_says_so(run: Run) -> None:
    assert "no project file" in run("windsurf", "--project", code=2).stderr


def test_a_file_with_comments_is_used_where_there_is_one(run: Run, home: Path) -> None:
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{ /* mine */ }")

    run("opencode", "--no-hooks")

    assert entry_in("opencode", path)
    assert [each.name for each in path.parent.glob("opencode.json")] == []


@pytest.mark.parametrize("name", ["claude-code", "codex", "kimi"])
def test_hooks_that_are_not_valid_are_named_and_nothing_is_changed(run: Run, home: Path, name: str) -> None:
    path = hook_file(name, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('hooks = "\n' if path.suffix == ".toml" else '{\n"hooks": {]}')

    error = run(name, code=1).stderr

    assert f"{path}, line {1 if path.suffix == '.toml' else 2}" in error
    assert not server_file(name, home).exists() or server_file(name, home) == path
    assert list(home.rglob("*before-sidecar")) == []


def test_the_list_says_what_is_connected(run: Run) -> None:
    run("codex")
    run("claude-code", "--project")

    lines = {line.split()[0]: line for line in run().stdout.splitlines() if line}

    assert "connected: user" in lines["codex"]
    assert "connected: project" in lines["claude-code"]
    assert "connected" not in lines["zed"]
    assert set(ADAPTERS) <= set(lines)


def test_an_unknown_agent_is_refused_with_the_known_ones(run: Run) -> None:
    assert "claude-code" in run("clyde", code=2).stderr
