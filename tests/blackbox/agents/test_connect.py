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

from sidecar.adapters import jsonc
from sidecar.adapters.registry import ADAPTERS
from tests.support.spawner import Spawner

CONNECTABLE = [name for name, adapter in ADAPTERS.items() if adapter.servers]
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
    found: Any = tomllib.loads(text) if servers.entry == "toml" else jsonc.parse(text).value
    for key in (*servers.container, "sidecar"):
        found = found[key]
    return found


def original(name: str) -> str:
    servers = ADAPTERS[name].servers
    assert servers is not None
    return TOML if servers.entry == "toml" else SETTINGS


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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", IN_PROJECT)
def test_a_project_gets_the_entry_and_a_block_of_instructions(run: Run, project: Path, name: str) -> None:
    file = ADAPTERS[name].instructions
    if file:
        (project / file).write_text("# Rules\n\nBe brief.")

    run(name, "--project")
    assert entry_in(name, server_file(name, project, "project"))
    if file:
        text = (project / file).read_text()
        assert text.startswith("# Rules\n\nBe brief.")
        assert text.count("sidecar: begin") == 1
    run(name, "--project", "--remove")

    assert not server_file(name, project, "project").exists()
    if file:
        assert (project / file).read_text() == "# Rules\n\nBe brief."


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
    assert "no settings for MCP servers" in run("pi", code=2).stderr
    assert "no project file" in run("windsurf", "--project", code=2).stderr


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
