"""Whatever a client does, in whatever order, from two processes: an answer each time, and a journal in order."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import pytest

from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json

SEEDS = [int(seed) for seed in os.environ.get("SIDECAR_RANDOM_SEEDS", "1 2 3").split()]
STEPS = 120
CHATS = ["a/b", "a b"]
EXPECTED = {-32001, -32002, -32003, -32004, -32010, -32011}
"""What may be said to a client that asks for the impossible; a failure of the sidecar is not among it."""


@dataclass
class Walk:
    """A client that does not know what it wants, with two sidecars on one database."""

    rng: random.Random
    pair: list[Sidecar]
    turns: list[str] = field(default_factory=lambda: ["never"])
    prompts: int = 0
    place: int = 0

    def step(self) -> None:
        self.place, chat = self.rng.randrange(len(self.pair)), self.rng.choice(CHATS)
        sidecar = self.pair[self.place]
        method, params = self.rng.choice(
            [self._send, self._send, self._send, self._turn, self._queue, self._chat]
        )()
        answer = sidecar.answer(sidecar.ask(method, chatId=chat, **params))
        code = answer.get("error", {}).get("code")
        assert code is None or code in EXPECTED, f"{method} {params}: {answer}"
        turn = answer.get("result", {}).get("turnId")
        self.turns += [turn] if turn else []

    def _prompt(self) -> str:
        self.prompts += self.rng.random() < 0.9
        return f"p{self.place} {self.prompts}"

    def _send(self) -> tuple[str, Json]:
        params: Json = {
            "promptId": self._prompt(),
            "text": self.rng.choice(["hello", "slow", "hang", "break"]),
        }
        if self.rng.random() < 0.6:
            params["delivery"] = self.rng.choice(["queue", "steer", "interrupt", "reject"])
        elif self.rng.random() < 0.3:
            params["replace"] = {"turnId": self.rng.choice(self.turns)}
        return "prompt/send", params

    def _turn(self) -> tuple[str, Json]:
        if self.rng.random() < 0.6:
            return "turn/cancel", {"queue": self.rng.choice(["pause", "keep", "clear"])}
        named = {"turnId": self.rng.choice(self.turns)} if self.rng.random() < 0.5 else {}
        return "turn/retry", {"promptId": self._prompt(), "from": self.rng.choice(["start", "here"]), **named}

    def _queue(self) -> tuple[str, Json]:
        prompt = f"p{self.place} {self.rng.randint(0, self.prompts)}"
        choices: list[tuple[str, Json]] = [
            ("prompt/edit", {"promptId": prompt, "content": [{"type": "text", "text": "edited"}]}),
            ("prompt/remove", {"promptId": prompt}),
            ("prompt/resume", {}),
            ("prompt/list", {}),
        ]
        return self.rng.choice(choices)

    def _chat(self) -> tuple[str, Json]:
        choices: list[tuple[str, Json]] = [
            ("chat/open", {"after": self.rng.choice(["start", "tail"])}),
            ("chat/close", {}),
            ("chat/rename", {"title": self.rng.choice(["Mine", None])}),
            ("chat/archive", {"archived": self.rng.random() < 0.5}),
            ("chat/configure", {"set": {"effort": self.rng.choice(["low", None])}}),
            ("chat/history", {"limit": 3}),
            ("chat/export", {}),
        ]
        return self.rng.choice(choices)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_use_is_answered_and_leaves_a_journal_in_order(spawn: Spawner, seed: int) -> None:
    pair = [spawn(model=write_script(spawn.folder)), spawn(model=write_script(spawn.folder))]
    sessions = [pair[0].call("chat/open", chatId=chat)["sessionId"] for chat in CHATS]
    walk = Walk(random.Random(seed), pair)
    for _ in range(STEPS):
        walk.step()
    for sidecar in pair:
        sidecar.close_stdin()
        sidecar.wait()
    reader = spawn()
    journals = {session: reader.journal(session) for session in sessions}
    assert [v for session, events in journals.items() for v in journal_violations(session, events)] == []
    assert [loss for sidecar in pair for loss in missing_events(sidecar.seen(), journals)] == []
    assert [reader.call("chat/open", chatId=chat)["state"] for chat in CHATS] == ["idle", "idle"]
