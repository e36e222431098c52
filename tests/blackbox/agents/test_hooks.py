"""`sidecar hook`: what agents run at the points of their sessions, and what becomes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.adapters.hook_command import LIMIT_S
from tests.support.spawner import Spawner
from tests.support.wire import Json

from .conftest import StartHost
from .hooks import HookRunner

Hook = Callable[..., Any]

OUTPUT = "\n".join(f"test {number} walrus failed" for number in range(400))


@pytest.fixture
def hook(tmp_path: Path, project: Path) -> Hook:
    """Run the hook of a platform for an event; return its answer, None when it gives none."""
    return HookRunner(Spawner(tmp_path).environment(), project)


def have_session(hook: Hook) -> None:
    """A session of Claude Code with a prompt, a tool call and an answer."""
    hook("claude-code", "UserPromptSubmit", prompt="Why does the walrus test fail?")
    hook(
        "claude-code",
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "make test"},
        tool_response={"stdout": OUTPUT, "stderr": ""},
    )
    hook("claude-code", "Stop", last_assistant_message="Because its tusk is missing.")


def test_a_captured_session_is_found_from_another_agent(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    host = start_host(client="codex-mcp-client")

    assert "tusk is missing" in host.text("search_chats", query="tusk")
    assert "Why does the walrus" in host.text("search_chats", query="why walrus")
    assert "test 399 walrus failed" in host.text("search_context", queries=["walrus 399"])


def test_hooks_and_calls_of_one_session_meet_in_one_chat(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    host = start_host(client="claude-code", env={"CLAUDE_CODE_SESSION_ID": "s1"})
    host.text("run_code", language="shell", code="echo narwhal")

    (chat,) = [one["uri"] for one in host.request("resources/list")["resources"] if "/chat/" in one["uri"]]
    text = host.request("resources/read", uri=chat)["contents"][0]["text"]
    assert "Why does the walrus" in text
    assert "tusk is missing" in text
    assert "narwhal" in text


def test_every_prompt_of_a_session_is_in_its_chat(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    hook("claude-code", "UserPromptSubmit", prompt="And the narwhal?")
    host = start_host(client="claude-code", env={"CLAUDE_CODE_SESSION_ID": "s1"})
    host.text("stats")

    (chat,) = [one["uri"] for one in host.request("resources/list")["resources"] if "/chat/" in one["uri"]]
    text = host.request("resources/read", uri=chat)["contents"][0]["text"]
    assert text.index("Why does the walrus") < text.index("tusk is missing") < text.index("the narwhal?")


def test_an_event_that_two_hooks_have_written_is_stored_once(hook: Hook, start_host: StartHost) -> None:
    for _ in range(2):
        hook("claude-code", "UserPromptSubmit", prompt="Where is the tusk?", prompt_id="p1")

    assert start_host().text("search_chats", query="tusk").count("Where is the tusk?") == 1


def test_after_a_compaction_the_session_gets_goals_files_and_plans(
    hook: Hook, start_host: StartHost, project: Path
) -> None:
    have_session(hook)
    edit = {"file_path": str(project / "src/tusk.py"), "old_string": "a", "new_string": "b"}
    hook("claude-code", "PostToolUse", tool_name="Edit", tool_input=edit, tool_response={})
    todos = [{"content": "Draw the tusk", "status": "in_progress", "activeForm": "Drawing"}]
    hook("claude-code", "PostToolUse", tool_name="TodoWrite", tool_input={"todos": todos}, tool_response={})
    hook("claude-code", "PreCompact", trigger="auto")
    host = start_host(client="claude-code")
    host.text("stats")
    answer = hook("claude-code", "SessionStart", source="compact")

    text = answer["hookSpecificOutput"]["additionalContext"]
    assert "Why does the walrus test fail?" in text
    assert "src/tusk.py" in text
    assert "Draw the tusk" in text
    assert len(text) < 4000


def test_a_session_that_goes_on_gets_nothing_that_it_has_already(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    start_host().text("stats")

    assert hook("claude-code", "SessionStart", source="resume") is None
    assert hook("claude-code", "UserPromptSubmit", prompt="And?") is None


def test_events_are_stored_once_however_often_the_server_starts(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    for _ in range(2):
        host = start_host()
        host.text("stats")
        host.close()

    assert start_host().text("search_chats", query="tusk").count("tusk is missing") == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("platform", ["claude-code", "codex", "gemini-cli", "copilot", "qwen-code"])
def test_a_new_session_starts_with_what_earlier_ones_were_about(
    hook: Hook, start_host: StartHost, platform: str
) -> None:
    have_session(hook)
    start_host().text("stats")

    answer = hook(platform, "sessionStart" if platform == "copilot" else "SessionStart", session_id="s2")

    assert answer is not None
    text = answer.get("additionalContext") or answer["hookSpecificOutput"]["additionalContext"]
    assert "Why does the walrus test fail?" in text
    assert len(text) < 4000


def test_the_first_prompt_brings_the_context_where_no_event_did(hook: Hook, start_host: StartHost) -> None:
    have_session(hook)
    start_host().text("stats")

    first = hook("qwen-code", "UserPromptSubmit", session_id="s2", prompt="Hello")
    second = hook("qwen-code", "UserPromptSubmit", session_id="s2", prompt="Again")

    assert first is not None
    assert "walrus" in first["hookSpecificOutput"]["additionalContext"]
    assert second is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("platform", "event", "call"),
    [
        ("claude-code", "PreToolUse", {"tool_name": "WebFetch", "tool_input": {"url": "http://x"}}),
        ("codex", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "curl http://x"}}),
        ("gemini-cli", "BeforeTool", {"tool_name": "web_fetch", "tool_input": {"prompt": "http://x"}}),
        ("copilot", "preToolUse", {"toolName": "bash", "toolArgs": '{"command": "wget https://x/y"}'}),
        ("qwen-code", "PreToolUse", {"tool_name": "read_file", "tool_input": {"absolute_path": "big.txt"}}),
    ],
)
def test_a_call_that_floods_the_context_is_pointed_elsewhere_once(
    hook: Hook, project: Path, platform: str, event: str, call: Json
) -> None:
    (project / "big.txt").write_text("x" * 200_000)

    first, second = hook(platform, event, **call), hook(platform, event, **call)

    assert first is not None
    assert "deny" in json.dumps(first)
    assert second is None


@pytest.mark.parametrize(
    "call",
    [
        {"tool_name": "Bash", "tool_input": {"command": "make test"}},
        {"tool_name": "Read", "tool_input": {"file_path": "notes.txt"}},
        {"tool_name": "Read", "tool_input": {"file_path": "big.txt", "limit": 100}},
        {"tool_name": "mcp__sidecar__fetch_url", "tool_input": {"url": "http://x"}},
    ],
)
def test_other_calls_go_on(hook: Hook, project: Path, call: Json) -> None:
    (project / "big.txt").write_text("x" * 200_000)

    assert hook("claude-code", "PreToolUse", **call) is None


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"[]", b'{"session_id": 7, "cwd": []}', b"\xff", b'{"prompt": "\\ud800"}', b"{}" * 9],
)
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreCompress", "SessionStart"])
def test_garbage_never_stops_the_agent(hook: Hook, event: str, raw: bytes) -> None:
    assert hook("claude-code", event, raw) is None


@pytest.mark.parametrize("hung", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_hook_that_cannot_go_on_gives_up_before_the_agent_does(
    tmp_path: Path, project: Path, hung: bool
) -> None:
    """Its input never ends, or its folder cannot be written: the agent goes on without an answer."""
    data = tmp_path / "data"
    if not hung:
        data.write_text("a file where the folder should be")
    process = subprocess.Popen(
        [sys.executable, "-m", "sidecar", "hook", "--platform", "copilot", "userPromptSubmitted"],
        env=Spawner(tmp_path).environment(),
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b'{"sessionId": "s", "prompt": "Go"}')
    process.stdin.flush()
    if not hung:
        process.stdin.close()
        process.stdin = None

    assert process.wait(LIMIT_S + 60) == 0
    out, _ = process.communicate()
    assert out == b""


def test_an_event_file_that_is_damaged_does_not_hold_the_others_up(
    hook: Hook, start_host: StartHost, tmp_path: Path
) -> None:
    folder = tmp_path / "data/agents/events"
    folder.mkdir(parents=True)
    (folder / "00000000000000000001-1.json").write_bytes(b"\xff{")
    (folder / "00000000000000000002-1.json").mkdir()
    have_session(hook)

    assert "tusk" in start_host().text("search_chats", query="tusk")


@pytest.mark.parametrize("words", [["SessionStart"], ["--platform", "nobody", "SessionStart"], []])
def test_wrong_words_say_how_the_command_is_used_and_deny_nothing(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sidecar", "hook", *words],
        env=Spawner(tmp_path).environment(),
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert "usage: sidecar hook --platform NAME EVENT" in done.stderr or "nobody" in done.stderr


def test_a_purge_leaves_nothing_of_a_session_behind(
    hook: Hook, start_host: StartHost, tmp_path: Path
) -> None:
    have_session(hook)
    host = start_host()
    host.text("stats")
    hook("claude-code", "UserPromptSubmit", prompt="A walrus that waits")
    host.text("purge", scope="all", confirm=True)
    host.close()

    data = tmp_path / "data"
    holding = [path for path in data.rglob("*") if path.is_file() and b"walrus" in path.read_bytes()]
    assert holding == []
    assert hook("codex", "SessionStart", session_id="s3") is None
