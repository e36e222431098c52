"""Exact counts: taken when they matter, and not while loading their table would hold up another chat's answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from sidecar.fake_provider.values import Model
from tests.blackbox.window.room import Room
from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner

WORDS = "several words of no importance " * 300
"""More than a chat may have whose tokens need not be counted."""


@pytest.fixture
def known() -> Iterator[FakeProvider]:
    """A model whose tokenizer is public, and whose window is large."""
    with in_thread(models=[Model("gpt-4o", window=128_000, output=4096)]) as fake:
        yield fake


def _streaming(room: Room) -> str:
    """A chat whose model goes on answering; its session."""
    other = room.open("other")
    room.sidecar.say("[[n=4000]] [[delay=20]]", chatId="other")
    room.sidecar.wait_event(other, "message.delta")
    return other


def test_while_another_chat_is_answered_an_estimate_does(spawn: Spawner, known: FakeProvider) -> None:
    room = Room(Workbench(spawn), known, "openai:gpt-4o", 128_000)
    other = _streaming(room)
    first = room.assembled(room.ask(f"{WORDS} [[say=Noted]]"))
    assert not first["exact"]
    room.sidecar.call("turn/cancel", chatId="other")
    room.sidecar.wait_event(other, "turn.ended")
    then = room.assembled(room.ask("And now? [[say=Counted]]"))
    assert then["exact"]
    assert first["used"] > then["used"] * 0.9, "an estimate is on the safe side"
    _streaming(room)
    assert room.assembled(room.ask("And now? [[say=Counted]]"))["exact"], "once loaded, it costs nothing"


def test_where_the_window_could_be_too_small_tokens_are_counted(spawn: Spawner, known: FakeProvider) -> None:
    room = Room(Workbench(spawn), known, "openai:gpt-4o", 12_000)
    _streaming(room)
    assert room.assembled(room.ask(f"{WORDS} [[say=Noted]]"))["exact"]
