"""The Copilot engine with its SDK, and a stand-in for the runtime."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.blackbox.engines.bench import EngineBench
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

pytestmark = pytest.mark.slow

RUNTIME = str(Path(__file__).parents[2] / "support" / "copilot_runtime.py")


class CopilotBench(EngineBench):
    def start(self, *traits: str, **settings: str | int) -> Sidecar:
        folder = self.spawn.folder / "home" / ".config" / "sidecar"
        folder.mkdir(parents=True, exist_ok=True)
        args = json.dumps([RUNTIME, str(self.agent_dir)])
        (folder / "config.toml").write_text(
            f"[engines.copilot]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
        )
        self.sidecar = self.spawn(capabilities={"permissions": True})
        self.sidecar.answering["permission/request"] = self._answer
        self.open(engine="copilot")
        return self.sidecar

    def sessions(self) -> list[str]:
        return sorted(file.stem for file in self.agent_dir.glob("*.jsonl"))


@pytest.fixture
def copilot(spawn: Spawner) -> CopilotBench:
    return CopilotBench(spawn)


def test_copilot_answers_in_a_session_with_the_id_of_the_chat(copilot: CopilotBench) -> None:
    sidecar = copilot.start()

    assert copilot.said("say Hello") == "Hello"
    assert copilot.sessions() == [sidecar.call("chat/open", chatId="c")["sessionId"]]
    assert copilot.turns()[-1]["usage"]["inputTokens"] == 12


def test_its_permissions_are_ours(copilot: CopilotBench) -> None:
    copilot.start()

    assert copilot.said("run echo one") == "approve-once"
    copilot.permission = "deny_once"
    assert copilot.said("run echo two") == "reject"
    assert [asked["subject"] for asked in copilot.asked] == ["echo one", "echo two"]
    assert [tool["status"] for tool in copilot.tools()] == ["completed", "denied"]


def test_a_killed_sidecar_resumes_the_session_and_creates_none(copilot: CopilotBench) -> None:
    sidecar = copilot.start()
    copilot.run("say Hello")
    sidecar.kill()

    copilot.start()

    assert copilot.said("said") == "say Hello\n---\nsaid"
    assert len(copilot.sessions()) == 1
    assert not (copilot.agent_dir / "created-over").exists()


def test_a_runtime_that_dies_ends_its_turn_with_an_error_and_loses_nothing(copilot: CopilotBench) -> None:
    copilot.start()
    copilot.run("say Hello")

    ended = copilot.run("die")

    assert (ended["reason"], ended["error"]["data"]["reason"]) == ("error", "agent_ended")
    assert copilot.said("said").startswith("say Hello\n---\n")


def test_a_session_that_has_lost_its_events_is_replaced_with_the_history(copilot: CopilotBench) -> None:
    sidecar = copilot.start()
    copilot.run("say The loom")
    sidecar.kill()
    for file in copilot.agent_dir.glob("*.jsonl"):
        file.write_text("")

    copilot.start()

    assert "The loom" in copilot.said("said")
    assert len(copilot.sessions()) == 2
    assert not (copilot.agent_dir / "created-over").exists()
