"""The real process killed at many points of random work, three on one database: nothing lost, nothing corrupt.

The work: prompts, cancels, imports, forks and deletes. What was answered before the kill holds after it.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
import time
from dataclasses import dataclass, field

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.reading import item_text
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json

KILLS = int(os.environ.get("SIDECAR_CRASH_KILLS", "100"))
SEED = int(os.environ.get("SIDECAR_CRASH_SEED", "7"))
A_ROUND = 100
"""Kills on one database; more than these are rounds, each with a seed and a database of its own."""

LINES = "\n".join(json.dumps({"role": role, "text": f"{role} says"}) for role in ("user", "assistant"))
PLACES = 3
LONGEST = 60
"""The two turns of a place have about as many frames: a kill comes anywhere in them, or just after."""


@dataclass
class Fleet:
    """Three sidecars on one database, each with two chats of its own, all chats watched by all three."""

    spawn: Spawner
    rng: random.Random
    model: str
    live: list[Sidecar] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    made: dict[str, int] = field(default_factory=dict)
    """Chats that were imported or forked, and how many turns each has at least."""
    gone: list[str] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    reopened: list[float] = field(default_factory=list)
    """Seconds from a new process's greeting to its first chat, opened after a kill."""
    prompts: int = 0

    def man(self, place: int) -> Sidecar:
        """Put a new sidecar in `place`; opening its own chats closes what its predecessor left."""
        sidecar = self.spawn(model=self.model)
        start = time.monotonic()
        sidecar.call("chat/open", chatId=self.chats(place)[0])
        self.reopened.append(time.monotonic() - start)
        for chat in self.chats(place) + [c for p in range(PLACES) if p != place for c in self.chats(p)]:
            sidecar.call("chat/open", chatId=chat)
        return sidecar

    def chats(self, place: int) -> list[str]:
        return [f"place {place} chat {number}" for number in range(2)]

    def prompt(self, place: int) -> list[Json]:
        """Start a turn in both chats of `place`; some stream slowly, some at once."""
        ids = []
        for chat in self.chats(place):
            self.prompts += 1
            text = self.rng.choice(["slow", "words " * 40, "hello"])
            override = {} if text == "slow" else {"overrides": {"model": "echo:"}}
            send = {"chatId": chat, "promptId": f"p{self.prompts}", "text": text, **override}
            ids.append(self.live[place].ask("prompt/send", **send))
        return [self.live[place].result(id) for id in ids]

    def kill_one(self) -> None:
        """All places stream; one is killed after a number of frames that was drawn, and replaced."""
        victim = self.rng.randrange(PLACES)
        sidecar = self.live[victim]
        start, point = len(sidecar.frames), self.rng.randint(0, LONGEST)
        sent = {place: self.prompt(place) for place in range(PLACES)}
        new = f"fresh {self.prompts}"
        id = sidecar.ask("chat/open", chatId=new)
        errands = self._errands(sidecar, sent[victim])
        self._let_run(sidecar, start + point, sent[victim])
        sidecar.kill(reap=self.rng.random() < 0.5)
        if sidecar.answers(id):
            self.fresh.append(new)
        self._hold_to(sidecar, errands)
        self.live[victim] = self.man(victim)
        for place in range(PLACES):
            for result in sent[place] if place != victim else ():
                self.live[place].wait_turn(result["sessionId"], result["turnId"])

    def _errands(self, sidecar: Sidecar, sent: list[Json]) -> list[tuple[str, str, int]]:
        """Ask for some other work while turns run: its kind, the chat that it is about, and the request's id."""
        number = self.prompts
        errands = []
        for kind in self.rng.sample(["cancel", "import", "fork", "delete"], self.rng.randint(1, 3)):
            self.asked[kind] = self.asked.get(kind, 0) + 1
            if kind == "cancel":
                id = sidecar.ask("turn/cancel", sessionId=sent[0]["sessionId"])
                errands.append((kind, sent[0]["sessionId"], id))
            elif kind == "import":
                name = f"imported {number}"
                errands.append((kind, name, sidecar.ask("chat/import", chatId=name, data=LINES)))
            elif kind == "fork" and self.made:
                source, name = self.rng.choice(sorted(self.made)), f"forked {number}"
                errands.append((kind, name, sidecar.ask("chat/fork", chatId=source, newChatId=name)))
            elif kind == "delete" and len(self.made) > 3:
                name = self.rng.choice(sorted(self.made))
                del self.made[name]  # whether it is deleted is open until it is answered
                errands.append((kind, name, sidecar.ask("chat/delete", chatId=name)))
        return errands

    def _hold_to(self, sidecar: Sidecar, errands: list[tuple[str, str, int]]) -> None:
        """Remember what was answered before the kill."""
        for kind, name, id in errands:
            answers = [answer for answer in sidecar.answers(id) if "result" in answer]
            if answers and kind in ("import", "fork"):
                self.made[name] = 1
            elif answers and kind == "delete":
                self.gone.append(name)

    def _let_run(self, sidecar: Sidecar, frames: int, sent: list[Json]) -> None:
        def done() -> bool:
            ended = {e["turnId"] for r in sent for e in sidecar.events(r["sessionId"], "turn.ended")}
            return len(sidecar.frames) >= frames or all(r["turnId"] in ended for r in sent)

        sidecar.wait_until(done, PATIENCE_S, "frames before the kill")


def rounds() -> list[tuple[int, int]]:
    """The seed and the kills of each round."""
    return [(SEED + start // A_ROUND, min(A_ROUND, KILLS - start)) for start in range(0, KILLS, A_ROUND)]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kills"), rounds())
def test_kills_lose_nothing_acknowledged_and_corrupt_nothing(spawn: Spawner, seed: int, kills: int) -> None:
    fleet = Fleet(spawn, random.Random(seed), write_script(spawn.folder))
    fleet.live += [fleet.man(place) for place in range(PLACES)]
    for _ in range(kills):
        fleet.kill_one()
    reader, witnesses = fleet.live[0], [sidecar.seen() for sidecar in fleet.spawn.sidecars]
    sessions = {session for seen in witnesses for session in seen}
    journals = {session: reader.journal(session) for session in sorted(sessions)}
    assert [loss for seen in witnesses for loss in missing_events(seen, journals)] == []
    assert [v for session, events in journals.items() for v in journal_violations(session, events)] == []
    assert unanswered(fleet) == []
    assert [c for c in fleet.fresh if reader.call("chat/open", chatId=c, ifMissing="fail")["turns"]] == []
    opened = {name: reader.call("chat/open", chatId=name, ifMissing="fail") for name in fleet.made}
    assert [name for name, turns in fleet.made.items() if len(opened[name]["turns"]) < turns] == []
    refused = {name: reader.refused("chat/open", chatId=name, ifMissing="fail").code for name in fleet.gone}
    assert [name for name, code in refused.items() if code not in (-32002, -32009)] == []
    assert_whole(fleet.spawn)
    tell(fleet, sum(len(events) for seen in witnesses for events in seen.values()))


def tell(fleet: Fleet, seen: int) -> None:
    """What a round was, for who asked for many."""
    times = sorted(fleet.reopened[PLACES:])
    figures = {
        "kills": len(times),
        "frames of events seen": seen,
        **fleet.asked,
        "reopened p50 ms": round(times[len(times) // 2] * 1000),
        "reopened p99 ms": round(times[len(times) * 99 // 100] * 1000),
    }
    sys.stderr.write(f"crash: {json.dumps(figures)}\n")


def unanswered(fleet: Fleet) -> list[str]:
    """The chats that do not answer a new prompt."""
    failed = []
    for place, sidecar in enumerate(fleet.live):
        for chat in fleet.chats(place):
            ended = sidecar.run("still there?", chatId=chat, overrides={"model": "echo:"})
            answer = sidecar.call("chat/history", chatId=chat, limit=1)["turns"][-1]["items"][-1]
            if (ended["data"]["reason"], item_text(answer)) != ("end_turn", "still there?"):
                failed.append(chat)
    return failed


def assert_whole(spawn: Spawner) -> None:
    for sidecar in spawn.sidecars:
        sidecar.close_stdin()
        sidecar.wait()
    (path,) = [
        p for p in spawn.data_dir.rglob("*") if p.is_file() and p.read_bytes()[:15] == b"SQLite format 3"
    ]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
