"""`sidecar doctor` says of each connection what is wrong with it, and how to mend it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.spawner import Spawner

pytestmark = pytest.mark.slow

Command = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def sidecar(tmp_path: Path, project: Path) -> Command:
    """Run a command of the program in the project; return what it prints."""
    environment = Spawner(tmp_path).environment()

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sidecar", *words],
            env=environment,
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr, done.stderr
        return done.stdout

    return run


@pytest.fixture
def checked(sidecar: Command) -> Callable[[str], str]:
    """What the doctor says about an agent, with its remedy; "" when it says nothing."""

    def check(name: str) -> str:
        lines = sidecar("doctor").splitlines()
        at = next((at for at, line in enumerate(lines) if f"agent.{name} " in line), None)
        if at is None:
            return ""
        action = lines[at + 1] if at + 1 < len(lines) and lines[at + 1].startswith("    ") else ""
        return f"{lines[at]} {action.strip()}"

    return check


def change(path: Path, **settings: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | settings))


def test_what_is_not_connected_is_not_named(checked: Callable[[str], str]) -> None:
    assert checked("claude-code") == ""


def test_a_connection_that_works_is_ok(sidecar: Command, checked: Callable[[str], str]) -> None:
    sidecar("connect", "claude-code")
    sidecar("connect", "zed", "--project")

    assert checked("claude-code").startswith("ok")
    assert "tools and hooks, for all projects" in checked("claude-code")
    assert "tools alone, for this project" in checked("zed")


def break_claude_file(home: Path, project: Path) -> None:
    (home / ".claude.json").write_text('{\n"mcpServers": {]}')


def remove_program(home: Path, project: Path) -> None:
    path = home / ".claude.json"
    path.write_text(path.read_text().replace(sys.executable, "/gone/python"))


def remove_hook_program(home: Path, project: Path) -> None:
    path = home / ".claude/settings.json"
    path.write_text(path.read_text().replace(sys.executable, "/gone/python"))


def remove_a_hook(home: Path, project: Path) -> None:
    path = home / ".claude/settings.json"
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"]
    path.write_text(json.dumps(settings))


def disable_hooks(home: Path, project: Path) -> None:
    change(project / ".claude/settings.local.json", disableAllHooks=True)


def remove_server(home: Path, project: Path) -> None:
    (home / ".claude.json").unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (break_claude_file, ".claude.json, line 2: "),
        (remove_program, ".claude.json starts '/gone/python', which is no program"),
        (remove_hook_program, "settings.json run '/gone/python', which is no program"),
        (remove_a_hook, "Some of its hooks are missing"),
        (disable_hooks, "Remove `disableAllHooks` from"),
        (remove_server, "not the server that stores what they note"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(
    sidecar: Command,
    checked: Callable[[str], str],
    home: Path,
    project: Path,
    damage: Callable[[Path, Path], None],
    said: str,
) -> None:
    sidecar("connect", "claude-code")
    damage(home, project)

    found = checked("claude-code")

    assert found.startswith("warn")
    assert said in found
    assert "Run `sidecar connect claude-code`" in found or "Correct" in found or "Remove" in found


def test_codex_runs_no_hook_that_is_not_trusted(
    sidecar: Command, checked: Callable[[str], str], home: Path
) -> None:
    sidecar("connect", "codex")
    untrusted = checked("codex")
    events = ("pre_tool_use", "post_tool_use", "user_prompt_submit", "session_start", "pre_compact", "stop")
    with (home / ".codex/config.toml").open("a") as file:
        for event in events:
            key = json.dumps(f"{home}/.codex/hooks.json:{event}:0:0")
            file.write(f'\n[hooks.state.{key}]\ntrusted_hash = "sha256:0"\n')

    assert "Codex runs no hook that you have not trusted" in untrusted
    assert "/hooks" in untrusted
    assert checked("codex").startswith("ok")


def test_opencode_waits_for_its_plugins_without_a_network(
    sidecar: Command, checked: Callable[[str], str], home: Path
) -> None:
    sidecar("connect", "opencode")
    before = checked("opencode")
    os.makedirs(home / ".config/opencode/node_modules/@opencode-ai/plugin")

    assert "70 s without a network" in before
    assert "--no-hooks" in before
    assert checked("opencode").startswith("ok")


@pytest.mark.parametrize(
    ("name", "file", "settings", "said"),
    [
        ("gemini-cli", ".gemini/settings.json", {"mcp": {"excluded": ["sidecar"]}}, "mcp.excluded"),
        ("gemini-cli", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}, "runs no hooks"),
        ("gemini-cli", ".gemini/settings.json", {"mcp": {"allowed": ["x"]}}, "mcp.allowed"),
        ("qwen-code", ".qwen/settings.json", {}, "tools.toolSearch.enabled"),
        ("copilot", ".copilot/settings.json", {"disableAllHooks": True}, "runs no hooks"),
    ],
)
def test_settings_of_the_agent_that_keep_ours_from_working_are_named(
    sidecar: Command,
    checked: Callable[[str], str],
    home: Path,
    name: str,
    file: str,
    settings: dict[str, object],
    said: str,
) -> None:
    sidecar("connect", name)
    change(home / file, **settings)

    assert said in checked(name)


def test_hooks_that_run_twice_are_named(
    sidecar: Command, checked: Callable[[str], str], project: Path
) -> None:
    sidecar("connect", "claude-code", "--project")
    sidecar("connect", "claude-code")

    assert "each runs twice" in checked("claude-code")
    assert "--project --remove" in checked("claude-code")
