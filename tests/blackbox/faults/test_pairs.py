"""Two faults at once, drawn at random: every request is answered once, every prompt that was accepted ends, and what
was shown is there afterwards or is named as lost. No pair ends in silence."""

from __future__ import annotations

import os
import random
import sys
from contextlib import ExitStack

import pytest

from tests.blackbox.faults.disks import mounted, unable
from tests.blackbox.faults.pairs import FAULTS, Stage, possible
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.verdict import journal_violations, missing_events
from tests.support.wire import Json

SEED = int(os.environ.get("SIDECAR_PAIRS_SEED", "1"))
PAIRS = int(os.environ.get("SIDECAR_PAIRS", "6"))
"""How many pairs are drawn, from seeds that follow one another; `make faults` draws 200."""

POINTS = ("idle", "asked", "streaming", "queued")
CHATS = ("c0", "c1", "c2")
ANSWERED_S, ENDED_S = 45.0, 45.0
KB = 1024


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED, SEED + PAIRS))
def test_no_pair_of_faults_ends_in_silence(spawn: Spawner, seed: int) -> None:
    rng = random.Random(seed)
    with ExitStack() as mounts:
        disk = None if unable() else mounts.enter_context(mounted(spawn.folder, "tmpfs", kib=12 * KB))
        spawn.data_dir = (disk or spawn.folder) / "data"
        model = write_script(spawn.folder)
        stage = Stage(spawn, rng, model, disk, spawn(model=model))
        first, second = rng.sample(possible(disk is not None), 2)
        plan = {first: rng.choice(POINTS), second: rng.choice(POINTS)}
        sys.stderr.write(f"pair {seed}: {plan}\n")
        try:
            work(stage, plan)
        finally:
            stage.undo.close()
        judge(stage)
        for sidecar in spawn.sidecars:
            sidecar.close_stdin()
            sidecar.wait()


def work(stage: Stage, plan: dict[str, str]) -> None:
    """Talk in several chats, and let each fault befall the sidecar at its point."""
    stage.live.run("before", chatId="c0")
    for point in POINTS:
        if point == "asked":
            for chat in CHATS:
                stage.send(chat, "slow")
        elif point == "streaming":
            wait_streaming(stage)
        elif point == "queued":
            stage.send("c0", "next")
            stage.send("c1", "join in", delivery="steer")
        for name in (name for name, at in plan.items() if at == point):
            FAULTS[name](stage)
    stage.ask("chat/history", chatId="c0")


def wait_streaming(stage: Stage) -> None:
    """Until words come, or it is plain that they do not."""
    sidecar, id = stage.asked[-1]
    sidecar.wait_until(
        lambda: sidecar.is_gone or bool(sidecar.answers(id)) or any(map(is_delta, sidecar.frames)),
        ANSWERED_S,
        "words",
    )


def is_delta(frame: Json) -> bool:
    return bool(frame.get("method") == "event" and frame["params"]["type"] == "message.delta")


def judge(stage: Stage) -> None:
    """The faults are over: all that was asked of those who live is answered, and one who starts now finds it all."""
    accepted: dict[str, set[str]] = {}
    # Files that were removed end with the last process that has them open, when that dies before it looks.
    stage.damages = stage.damages or (
        stage.removed and any(sidecar.killed for sidecar in stage.spawn.sidecars)
    )
    for sidecar, id in stage.asked:
        if not sidecar.is_gone and not sidecar.killed:
            sidecar.answer(id, ANSWERED_S)
        for answer in sidecar.answers(id):
            if (turn := answer.get("result", {}).get("turnId")) is not None:
                accepted.setdefault(answer["result"]["sessionId"], set()).add(turn)
    assert_lives(stage)
    for sidecar in stage.spawn.sidecars:
        sidecar.close_stdin()
        sidecar.wait()
    assert_kept(stage, stage.spawn(model=stage.model), accepted)


def assert_lives(stage: Stage) -> None:
    """Whoever was not killed takes a prompt and ends it, or says why not."""
    for number, sidecar in enumerate(stage.spawn.sidecars):
        if sidecar.is_gone:
            assert sidecar.killed, "it has ended by itself"
            continue
        answer = sidecar.answer(
            sidecar.ask("prompt/send", chatId=f"still {number}", promptId="p", text="there?"), ANSWERED_S
        )
        if "error" in answer:
            assert answer["error"]["code"] == -32015, answer
        else:
            sent = answer["result"]
            sidecar.wait_until(lambda: ended(sidecar, sent), ENDED_S, "end of the last prompt")  # noqa: B023


def ended(sidecar: Sidecar, sent: Json) -> bool:
    """Its end was shown; or all chats are to be opened anew, since the database was replaced."""
    shown = {event["turnId"] for event in sidecar.events(sent["sessionId"], "turn.ended")}
    return sent["turnId"] in shown or sidecar.statuses("storage")[-1]["data"].get("recovered") is not None


def assert_kept(stage: Stage, reader: Sidecar, accepted: dict[str, set[str]]) -> None:
    witnesses = [sidecar.seen() for sidecar in stage.spawn.sidecars if sidecar is not reader]
    sessions = sorted({session for seen in witnesses for session in seen} | set(accepted))
    journals: dict[str, list[Json]] = {}
    named: set[str] = set()
    for session in sessions:
        answer = reader.answer(reader.ask("chat/open", sessionId=session, ifMissing="fail"), ANSWERED_S)
        if "error" in answer:
            assert stage.damages, answer
            assert answer["error"]["code"] in (-32015, -32002), answer
            named.add(session)
            continue
        opened = answer["result"]
        if (opened.get("recovered") or {}).get("salvage", {}).get("lost"):
            named.add(session)
        journals[session] = reader.journal(session)
        open_turns = [turn["id"] for turn in opened["turns"] if turn["status"] == "running"]
        assert open_turns == [], f"{session}: turns that never ended"
        if session not in named and not stage.damages:
            told = {
                event["data"].get("turnId")
                for event in journals[session]
                if event["type"].startswith("prompt.")
            }
            assert accepted.get(session, set()) <= told, f"{session}: accepted, and gone"
    assert_nothing_unnamed(witnesses, journals, named)


def assert_nothing_unnamed(
    witnesses: list[dict[str, list[Json]]], journals: dict[str, list[Json]], named: set[str]
) -> None:
    """A chat that lost something says so when it is opened, or has a new epoch once turns were added to it."""
    whole = {session: events for session, events in journals.items() if session not in named}
    for seen in witnesses:
        same = {
            session: [event for event in events if event["epoch"] == whole[session][0]["epoch"]]
            for session, events in seen.items()
            if whole.get(session)
        }
        lost = missing_events(same, whole)
        assert not lost, lost
    assert [
        rule for session, events in whole.items() if events for rule in journal_violations(session, events)
    ] == []
