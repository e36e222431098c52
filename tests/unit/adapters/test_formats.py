"""How each agent writes a server and a hook, and what its hooks send and take: one row for each agent."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.adapters.hook_formats import HookEvent, output_text
from sidecar.adapters.registry import ADAPTERS

COMMAND = ["/bin/sidecar", "mcp"]
PLAIN = {"command": "/bin/sidecar", "args": ["mcp"]}
STDIO = {"type": "stdio", **PLAIN}
LISTED = {"type": "local", "command": COMMAND, "enabled": True}

SERVERS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "claude-code": (("mcpServers",), STDIO),
    "codex": (("mcp_servers",), PLAIN),
    "gemini-cli": (("mcpServers",), PLAIN),
    "opencode": (("mcp",), LISTED),
    "copilot": (("mcpServers",), {"type": "local", **PLAIN, "tools": ["*"]}),
    "qwen-code": (("mcpServers",), PLAIN),
    "openclaw": (("mcp", "servers"), PLAIN),
    "cursor": (("mcpServers",), PLAIN),
    "vscode": (("servers",), STDIO),
    "zed": (("context_servers",), PLAIN),
    "windsurf": (("mcpServers",), PLAIN),
    "kiro": (("mcpServers",), PLAIN),
    "jetbrains": (("mcpServers",), PLAIN),
    "codebuddy": (("mcpServers",), PLAIN),
    "kilo": (("mcp",), LISTED),
    "kimi": (("mcpServers",), PLAIN),
    "pi": (("mcpServers",), {**PLAIN, "exposure": "direct"}),
    "omp": (("mcpServers",), PLAIN),
}


def hook(**more: Any) -> dict[str, Any]:
    return {"type": "command", **more}


GROUP = {"matcher": "*", "hooks": [hook(command="run", timeout=10)]}

HOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "claude-code": ("PreToolUse", GROUP),
    "codex": ("PreToolUse", GROUP),
    "gemini-cli": (
        "BeforeTool",
        {"matcher": "*", "hooks": [hook(name="sidecar", command="run", timeout=10_000)]},
    ),
    "copilot": ("preToolUse", hook(bash="run || true", timeoutSec=10)),
    "qwen-code": ("PreToolUse", {"matcher": "*", "hooks": [hook(command="run", timeout=10_000)]}),
    "cursor": ("preToolUse", {"command": "run", "timeout": 10}),
    "vscode": ("PreToolUse", GROUP),
    "windsurf": ("pre_run_command", {"command": "run", "show_output": False}),
    "kiro": (
        "PreToolUse",
        {
            "name": "sidecar-PreToolUse",
            "trigger": "PreToolUse",
            "action": hook(command="run"),
            "timeout": 10,
        },
    ),
    "codebuddy": ("PreToolUse", GROUP),
    "kimi": ("PreToolUse", {"event": "PreToolUse", "command": "run", "timeout": 10}),
}

SCRIPTED = {"opencode", "kilo", "pi", "omp"}
WITHOUT_HOOKS = {"openclaw", "zed", "jetbrains"}


def test_every_agent_has_its_row() -> None:
    assert set(SERVERS) == set(ADAPTERS)
    assert set(HOOKS) | SCRIPTED | WITHOUT_HOOKS == set(ADAPTERS)


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_written_as_the_agent_reads_it(name: str) -> None:
    servers = ADAPTERS[name].servers
    assert servers is not None
    assert (servers.container, servers.entry(COMMAND)) == SERVERS[name]


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_written_as_the_agent_reads_it(name: str) -> None:
    event, entry = HOOKS[name]
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    assert hooks.format.entry(event, "run") == entry


@pytest.mark.parametrize("name", sorted(SCRIPTED))
def test_a_script_runs_the_hook_and_names_its_agent(name: str) -> None:
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    assert hooks.script is not None
    text = hooks.script(["/bin/my sidecar", "hook", "--platform", name])

    assert f'["/bin/my sidecar", "hook", "--platform", "{name}"]' in text
    for event in hooks.format.events:
        assert f'"{event}"' in text


def read(name: str, event: str, payload: dict[str, Any]) -> HookEvent:
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    return hooks.format.read(event, payload)


CURSOR = {"conversation_id": "c1", "workspace_roots": ["/p", "/q"], "cursor_version": "3.0"}
WINDSURF = {"trajectory_id": "t1", "execution_id": "e1"}


@pytest.mark.parametrize(
    ("name", "event", "payload", "found"),
    [
        ("cursor", "beforeSubmitPrompt", CURSOR | {"prompt": "Go"}, ("c1", "/p", "", "Go")),
        ("cursor", "afterAgentResponse", CURSOR | {"text": "Gone"}, ("c1", "/p", "", "Gone")),
        (
            "cursor",
            "postToolUse",
            CURSOR | {"tool_name": "Shell", "tool_input": {}, "tool_output": '{"stdout": "1\\n2"}'},
            ("c1", "/p", "Shell", "1\n2"),
        ),
        (
            "windsurf",
            "pre_run_command",
            WINDSURF | {"tool_info": {"command_line": "curl x", "cwd": "/p"}},
            ("t1", "/p", "shell", ""),
        ),
        (
            "windsurf",
            "post_mcp_tool_use",
            WINDSURF
            | {"tool_info": {"mcp_tool_name": "look", "mcp_tool_arguments": {}, "mcp_result": "seen"}},
            ("t1", "", "look", "seen"),
        ),
        (
            "windsurf",
            "post_cascade_response",
            WINDSURF | {"tool_info": {"response": "Gone"}},
            ("t1", "", "shell", "Gone"),
        ),
        (
            "kiro",
            "PostToolUse",
            {"session_id": "k1", "cwd": "/p", "tool_name": "fs_read", "tool_response": {"result": ["x"]}},
            ("k1", "/p", "fs_read", '{"result": ["x"]}'),
        ),
        (
            "kimi",
            "UserPromptSubmit",
            {"session_id": "s", "cwd": "/p", "prompt": [{"type": "text", "text": "Go"}]},
            ("s", "/p", "", "Go"),
        ),
        ("vscode", "Stop", {"sessionId": "v1", "cwd": "/p", "hookEventName": "Stop"}, ("v1", "/p", "", "")),
        ("pi", "prompt", {"session_id": "p1", "cwd": "/p", "text": "Go"}, ("p1", "/p", "", "Go")),
    ],
)
def test_what_a_hook_is_sent_is_read(
    name: str, event: str, payload: dict[str, Any], found: tuple[str, ...]
) -> None:
    """These agents were not run: the payloads are those of their documentation."""
    read_event = read(name, event, payload)

    assert (read_event.session, read_event.project, read_event.tool, read_event.text) == found


@pytest.mark.parametrize(
    ("name", "event", "denied"),
    [
        (
            "cursor",
            "preToolUse",
            ({"permission": "deny", "agent_message": "No", "user_message": "No"}, 0, ""),
        ),
        ("windsurf", "pre_run_command", (None, 2, "No")),
        ("kiro", "PreToolUse", (None, 2, "No")),
        ("gemini-cli", "BeforeTool", ({"decision": "deny", "reason": "No"}, 0, "")),
        ("pi", "before_tool", ({"deny": "No"}, 0, "")),
    ],
)
def test_a_denial_is_said_in_the_agents_words(name: str, event: str, denied: tuple[Any, int, str]) -> None:
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    reply = hooks.format.deny(event, "No")
    assert (reply.data, reply.code, reply.reason) == denied


@pytest.mark.parametrize(
    ("name", "event", "given"),
    [
        ("cursor", "sessionStart", ({"additional_context": "T"}, "")),
        ("cursor", "beforeSubmitPrompt", None),
        ("kiro", "SessionStart", (None, "T")),
        ("kimi", "SessionStart", None),
        ("kimi", "UserPromptSubmit", (None, "T")),
        ("windsurf", "pre_user_prompt", None),
        ("opencode", "before_compaction", ({"context": "T"}, "")),
    ],
)
def test_text_for_the_model_is_given_where_the_agent_takes_it(
    name: str, event: str, given: tuple[Any, str] | None
) -> None:
    hooks = ADAPTERS[name].hooks
    assert hooks is not None
    reply = hooks.format.add_context(event, "T")
    assert (reply and (reply.data, reply.text)) == given


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ("x", "x"),
        (None, ""),
        ({}, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], "a\nb"),
        ({"content": [{"text": "a"}]}, "a"),
        ({"stdout": "o", "stderr": "e", "interrupted": False}, "o\ne"),
        ({"llmContent": [{"text": "a"}], "returnDisplay": "d"}, "a"),
        ({"files": 3}, '{"files": 3}'),
    ],
)
def test_the_text_of_an_output_is_found_in_every_form(found: Any, text: str) -> None:
    assert output_text(found) == text
