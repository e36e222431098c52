from __future__ import annotations

import pytest

from sidecar.adapters.registry import ADAPTERS, UNKNOWN, detect, session_id
from sidecar.policy.protected import protected_reason, secret_reason
from sidecar.system.choices import AGENTS

COPILOT = {"COPILOT_AGENT_SESSION_ID": "c-1", "CLAUDE_PROJECT_DIR": "/p"}


@pytest.mark.parametrize(
    ("client", "environ", "chosen", "found"),
    [
        ("claude-code", {}, None, "claude-code"),
        ("codex-mcp-client", {"CLAUDECODE": "1"}, None, "codex"),
        ("qwen-cli-mcp-client-sidecar", {"GEMINI_CLI": "1"}, None, "qwen-code"),
        ("Visual-Studio-Code", {}, "codex", "vscode"),
        ("someone", {"CLAUDECODE": "1"}, "codex", "codex"),
        ("someone", {"CLAUDECODE": "1"}, None, "claude-code"),
        ("someone", COPILOT, None, "copilot"),
        ("", {"GEMINI_CLI": "1"}, None, "gemini-cli"),
        ("claude-code-fan", {}, None, "mcp"),
    ],
)
def test_the_client_name_counts_before_all_else(
    client: str, environ: dict[str, str], chosen: str | None, found: str
) -> None:
    assert detect(client, environ, chosen).name == found


def test_no_two_adapters_claim_one_client() -> None:
    clients = [client for adapter in ADAPTERS.values() for client in adapter.clients]

    assert len(clients) == len(set(clients))


@pytest.mark.parametrize(
    ("adapter", "meta", "environ", "found"),
    [
        ("codex", {"x-codex-turn-metadata": {"session_id": "s1"}}, {}, "s1"),
        ("codex", {"x-codex-turn-metadata": "s1"}, {}, None),
        ("codex", {}, {"CLAUDE_CODE_SESSION_ID": "other"}, None),
        ("claude-code", {}, {"CLAUDE_CODE_SESSION_ID": "s2"}, "s2"),
        ("copilot", {}, COPILOT, "c-1"),
        ("zed", {}, COPILOT, None),
    ],
)
def test_a_session_is_named_by_its_own_agent(
    adapter: str, meta: dict[str, object], environ: dict[str, str], found: str | None
) -> None:
    assert session_id(ADAPTERS[adapter], meta, environ) == found


def test_an_unknown_client_has_no_session_id() -> None:
    assert session_id(UNKNOWN, {"session_id": "x"}, COPILOT) is None


@pytest.mark.parametrize(
    ("environ", "folders", "parents", "found"),
    [
        ({}, [], [], "mcp"),
        ({}, [["src", ".gemini"]], ["zed"], "gemini-cli"),
        ({}, [["src", ".gemini", ".codex"], [".qwen"]], [], "qwen-code"),
        ({}, [["src"], [".codex", ".cursor"]], ["node", "cli", "cursor"], "cursor"),
        ({}, [[".mcp.json", ".vscode", ".github", ".config"]], ["bash", "zed", "codex"], "zed"),
        ({"QWEN_CODE_SESSION_ID": "q"}, [[".gemini"]], ["codex"], "qwen-code"),
        ({"CLAUDECODE": "1", "OPENCODE": "1"}, [], ["opencode"], "opencode"),
    ],
)
def test_a_client_without_a_name_is_known_by_variables_then_folders_then_processes(
    environ: dict[str, str], folders: list[list[str]], parents: list[str], found: str
) -> None:
    assert detect("", environ, folders=folders, parents=parents).name == found


def test_nothing_is_guessed_when_the_user_does_not_want_it() -> None:
    environ = {"CLAUDECODE": "1"}
    assert detect("", environ, guess=False, folders=[[".codex"]], parents=["codex"]).name == "mcp"
    assert detect("", environ, "zed", guess=False).name == "zed"


def test_commands_and_settings_name_every_agent() -> None:
    assert tuple(ADAPTERS) == AGENTS


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_files_of_every_agent_in_a_project_ask_before_they_change(name: str) -> None:
    adapter = ADAPTERS[name]
    servers = [adapter.servers.project, adapter.servers.user] if adapter.servers else []
    hooks = [adapter.hooks.project] if adapter.hooks else []
    named = [path for path in (*servers, *hooks, adapter.instructions) if path]
    assert [path for path in named if protected_reason(path) is None] == []
    assert [path for path in servers if path and secret_reason(path) is None] == []
