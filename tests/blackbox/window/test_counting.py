"""Exact counts: taken when they matter, whatever other chats do."""

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


def test_while_another_chat_is_answered_tokens_are_counted(spawn: Spawner, known: FakeProvider) -> None:
    room = Room(Workbench(spawn), known, "openai:gpt-4o", 128_000)
    _streaming(room)
    assert room.assembled(room.ask(f"{WORDS} [[say=Noted]]"))["exact"]


def test_where_the_window_could_be_too_small_tokens_are_counted(spawn: Spawner, known: FakeProvider) -> None:
    room = Room(Workbench(spawn), known, "openai:gpt-4o", 12_000)
    _streaming(room)
    assert room.assembled(room.ask(f"{WORDS} [[say=Noted]]"))["exact"]
