"""Sessions of the real agents, as their hooks were called: recorded with the versions that the files name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.adapters.registry import ADAPTERS
from tests.support.spawner import Spawner
from tests.support.wire import Json

from .conftest import StartHost
from .hooks import HookRunner, recorded, waiting_events

AGENTS = ("claude-code", "codex", "gemini-cli", "copilot", "qwen-code")

OUTPUTS = {
    "claude-code": "1\n2\n3",
    "codex": "1\n2\n3\n",
    "gemini-cli": "1\n2\n3",
    "copilot": "1\n2\n3\n<shellId: 0 completed with exit code 0>",
    "qwen-code": "1\n2\n3",
}


@pytest.fixture
def replay(tmp_path: Path, project: Path) -> Any:
    """Run the hooks of a recorded session; return their answers by event."""
    home = tmp_path / "home"
    runner = HookRunner(Spawner(tmp_path).environment(), project)

    def replay(platform: str, **changed: str) -> list[tuple[str, Json | None]]:
        answers = []
        for event, payload in recorded(platform, project, home):
            transcript = payload.get("transcriptPath")
            if transcript:
                write_transcript(Path(transcript))
            done = runner.run(platform, event, json.dumps(payload | changed).encode())
            assert (done.returncode, done.stderr) == (0, b""), done
            answers.append((event, json.loads(done.stdout) if done.stdout else None))
        return answers

    return replay


def write_transcript(path: Path) -> None:
    """Copilot's own file of a session: it sends no answers to its hooks."""
    said = {
        "type": "assistant.message",
        "data": {"content": "The walrus counts to three.", "toolRequests": []},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("not json\n" + json.dumps(said) + '\n{"type": "assistant.turn_end", "data": {}}\n')


@pytest.mark.sampled(2)
@pytest.mark.parametrize("platform", AGENTS)
def test_a_session_is_recorded_as_prompt_call_and_answer(
    replay: Any, tmp_path: Path, project: Path, platform: str
) -> None:
    replay(platform)

    first, call, answer, *_ = waiting_events(tmp_path / "data")
    assert {first["platform"], call["platform"], answer["platform"]} == {platform}
    assert {first["project"], call["project"]} == {str(project)}
    assert len({first["session"], call["session"], answer["session"]}) == 1
    assert (first["kind"], first["text"]) == ("prompt", "Count for the walrus.")
    assert (call["kind"], call["input"]["command"]) == ("after_tool", "seq 1 3")
    assert OUTPUTS[platform] in call["text"]
    assert answer["kind"] == "answer"
    # Gemini sends the pieces of a streamed answer a second time.
    assert answer["text"].startswith("The walrus counts to three.")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("platform", [name for name in AGENTS if name not in ("gemini-cli", "copilot")])
def test_after_a_compaction_the_session_gets_back_where_it_stands(
    replay: Any, start_host: StartHost, platform: str
) -> None:
    """The server has stored nothing yet: the prompts that wait are shown all the same."""
    answers = replay(platform)

    texts = [answer["hookSpecificOutput"]["additionalContext"] for _, answer in answers if answer]
    assert len(texts) == 1
    assert "Count for the walrus." in texts[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("platform", AGENTS)
def test_a_stored_session_is_a_chat_with_a_snapshot(
    replay: Any, start_host: StartHost, tmp_path: Path, platform: str
) -> None:
    replay(platform)
    host = start_host(client="Zed")
    text = host.text("search_chats", query="walrus")
    listed = host.request("resources/list")["resources"]
    uri = next(one["uri"] for one in listed if one["name"].startswith(ADAPTERS[platform].title))
    shown = host.request("resources/read", uri=uri)["contents"][0]["text"]
    kept = [path.read_text("utf-8") for path in (tmp_path / "data/agents/sessions").iterdir()]

    assert "Count for the walrus" in text
    assert "seq 1 3" in shown
    assert ("Gone on." in shown) is (platform == "codex")
    assert any("Count for the walrus." in one for one in kept)
    assert waiting_events(tmp_path / "data") == []


def test_gemini_is_asked_before_every_request_and_answers_nothing(replay: Any, tmp_path: Path) -> None:
    answers = replay("gemini-cli")

    compressed = [answer for event, answer in answers if event == "PreCompress"]
    kinds = [event["kind"] for event in waiting_events(tmp_path / "data")]
    assert compressed == [None] * 4
    assert kinds == ["prompt", "after_tool", "answer", "before_compaction"]


def test_the_prompt_after_a_compaction_brings_back_what_no_start_did(
    replay: Any, tmp_path: Path, project: Path
) -> None:
    replay("copilot")
    runner = HookRunner(Spawner(tmp_path).environment(), project)
    session = recorded("copilot", project, tmp_path)[0][1]["sessionId"]

    first = runner("copilot", "userPromptSubmitted", sessionId=session, session_id="", prompt="And now?")
    second = runner("copilot", "userPromptSubmitted", sessionId=session, session_id="", prompt="And then?")

    assert "Count for the walrus." in first["additionalContext"]
    assert second is None


def test_an_agent_that_runs_the_hooks_of_another_is_known_and_runs_them_once(
    tmp_path: Path, project: Path
) -> None:
    """Copilot, in a folder that it trusts, also runs the hooks of a project's `.claude/settings.json`."""
    runner = HookRunner(Spawner(tmp_path).environment(), project)
    payload = {
        "hook_event_name": "PostToolUse",
        "session_id": "c1",
        "cwd": str(project),
        "tool_name": "Bash",
        "tool_input": {"command": "seq 1 3"},
        "tool_result": {"result_type": "success", "text_result_for_llm": "1\n2\n3"},
    }
    raw = json.dumps(payload).encode()
    runner.run("claude-code", "PostToolUse", raw, COPILOT_HOOK_DIR="/x")
    (event,) = waiting_events(tmp_path / "data")
    own = project / ".github/hooks/sidecar.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"hooks": {"preToolUse": [{"bash": "sidecar hook --platform copilot preToolUse"}]}}')
    runner.run("claude-code", "PostToolUse", raw, COPILOT_HOOK_DIR="/x")

    assert (event["platform"], event["text"]) == ("copilot", "1\n2\n3")
    assert len(waiting_events(tmp_path / "data")) == 1


def test_the_project_is_what_the_agent_says_not_the_folder_it_has_gone_to(
    tmp_path: Path, project: Path
) -> None:
    (project / "src").mkdir()
    runner = HookRunner(Spawner(tmp_path).environment(), project / "src")
    payload = {"session_id": "s1", "cwd": str(project / "src"), "prompt": "Go"}

    runner.run(
        "claude-code", "UserPromptSubmit", json.dumps(payload).encode(), CLAUDE_PROJECT_DIR=str(project)
    )

    assert [event["project"] for event in waiting_events(tmp_path / "data")] == [str(project)]
