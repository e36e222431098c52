"""Limits of one turn, by the settings: tokens in and out, and seconds. What was said stays, and the limit is named."""

from __future__ import annotations

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.room import Json, say_tool
from tests.blackbox.work.workbench import ALL, Workbench
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

USED = "[[usage=290,10]]"
LOOK = f'{USED}[[tool=list_dir:{{}}]][[next]]{USED}[[tool=glob:{{"pattern": "*"}}]][[next]]{USED}[[say=All done]]'
"""Three requests to the model, each of 300 tokens."""


@pytest.fixture
def limited(bench: Workbench, fake: FakeProvider, spawn: Spawner, request: pytest.FixtureRequest) -> Sidecar:
    """A sidecar with this line under `[session]` in its settings."""
    table = spawn.folder / "limits.toml"
    table.write_text(f"[session]\n{request.param}\n")
    sidecar = spawn("--config", str(table), model="openai:fake-1", env=fake.env, capabilities=ALL)
    bench.open(sidecar)
    return sidecar


def _ended(sidecar: Sidecar, prompt: str) -> tuple[Json, list[Json]]:
    """The end of the prompt's turn, and the notices of a limit."""
    ended = sidecar.run(prompt, chatId="c")
    notices = [event["data"] for event in sidecar.events(ended["sessionId"], "notice")]
    return ended["data"], [notice for notice in notices if notice["code"] == "limit_reached"]


@pytest.mark.parametrize("limited", ["max_tokens = 500"], indirect=True)
def test_a_turn_ends_after_so_many_tokens(limited: Sidecar, fake: FakeProvider) -> None:
    ended, notices = _ended(limited, f"Look around {LOOK}")

    assert ended["reason"] == "max_tokens"
    assert notices == [{"code": "limit_reached", "params": {"limit": "tokens"}}]
    assert ended["usage"]["inputTokens"] + ended["usage"]["outputTokens"] == 600, "two requests, not three"
    assert len([request for request in fake.requests if request.method == "POST"]) == 2
    ended, notices = _ended(limited, f"Thanks {USED} [[say=You are welcome]]")
    assert ended["reason"] == "end_turn", "each turn has its own"
    assert len(notices) == 1


@pytest.mark.parametrize("limited", ["max_tokens = 5000"], indirect=True)
def test_a_turn_within_its_tokens_ends_by_itself(limited: Sidecar) -> None:
    ended, notices = _ended(limited, f"Look around {LOOK}")
    assert (ended["reason"], notices) == ("end_turn", [])


@pytest.mark.parametrize("limited", ["max_seconds = 0.2"], indirect=True)
def test_a_turn_ends_after_so_many_seconds(limited: Sidecar, fake: FakeProvider) -> None:
    ended, notices = _ended(limited, say_tool("run_command", command="sleep 0.3; echo slept"))

    assert ended["reason"] == "max_steps"
    assert notices == [{"code": "limit_reached", "params": {"limit": "time"}}]
    assert len([request for request in fake.requests if request.method == "POST"]) == 1
    [tool] = [event["data"]["item"] for event in limited.events(_session(limited), "tool.ended")]
    assert "slept" in tool["output"]["text"], "what was done stays"


def _session(sidecar: Sidecar) -> str:
    return str(sidecar.call("chat/open", chatId="c")["sessionId"])


@pytest.mark.parametrize("limited", ["max_seconds = 600"], indirect=True)
def test_a_turn_within_its_seconds_ends_by_itself(limited: Sidecar) -> None:
    ended, notices = _ended(limited, say_tool("run_command", command="echo quick"))
    assert (ended["reason"], notices) == ("end_turn", [])
