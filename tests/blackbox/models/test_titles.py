"""Titles that the model gives: after the first turn, once, and never over the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.fake_provider import FakeProvider, Recorded
from tests.blackbox.models.talk import Json, Talk
from tests.support.spawner import Spawner

NAME = "Punch cards explained"
PROMPT = f"How do punch cards work [[say={NAME}]]"
SLOW = f"{PROMPT} [[delay=40]]"


def _talk(api: str, fake: FakeProvider, spawn: Spawner, folder: Path, how: str = "model") -> Talk:
    talk = Talk(api, fake, spawn, folder)
    talk.sidecar.call("settings/write", scope="user", set={"titles": how})
    return talk


@pytest.fixture
def talk(api: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> Talk:
    """Titles are the model's to give."""
    return _talk(api, fake, spawn, tmp_path)


@pytest.fixture
def one(fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> Talk:
    """The same, over one API."""
    return _talk("openai-chat", fake, spawn, tmp_path)


def title(talk: Talk) -> str:
    found: str = talk.sidecar.call("chat/open", chatId="c")["title"]
    return found


def wait_for_name(talk: Talk, sent: Json, name: str) -> Json:
    return talk.sidecar.wait_event(
        sent["sessionId"], lambda event: event["type"] == "chat.renamed" and event["data"]["title"] == name
    )


def is_for_title(request: Recorded) -> bool:
    return b"Give the chat" in request.body


@pytest.mark.sampled(1)
def test_the_model_is_asked_after_the_first_turn_and_only_then(talk: Talk) -> None:
    first_was_over: list[bool] = []
    talk.fake.on_request = lambda request: first_was_over.append(
        is_for_title(request) and talk.asked[0].ended.is_set()
    )
    sent = talk.send("c", PROMPT)
    talk.end(sent)
    renamed = wait_for_name(talk, sent, NAME)
    talk.ask("[[say=second]]")

    assert renamed["data"] == {"title": NAME, "by": "sidecar"}
    assert [is_for_title(request) for request in talk.asked] == [False, True, False]
    assert first_was_over == [False, True, False]
    assert b"How do punch cards work" in talk.asked[1].body, "it must name what the user asked"
    assert [request.rule for request in talk.asked if request.rule] == []
    assert title(talk) == NAME


def test_the_users_own_title_stays_and_nobody_is_asked(one: Talk) -> None:
    one.sidecar.call("chat/open", chatId="c")
    one.sidecar.call("chat/rename", chatId="c", title="Mine")
    one.ask(PROMPT)
    one.ask("[[say=second]]")

    assert title(one) == "Mine"
    assert not any(map(is_for_title, one.asked))


def test_a_title_that_the_user_gives_meanwhile_stays(one: Talk) -> None:
    sent = one.send("c", SLOW)
    one.end(sent)
    one.sidecar.wait_until(lambda: len(one.asked) == 2, 5, "the request for a title")
    one.sidecar.call("chat/rename", chatId="c", title="Mine")
    one.sidecar.wait_until(lambda: one.asked[1].ended.is_set(), 5, "the model's title")
    one.ask("[[say=second]]")

    assert is_for_title(one.asked[1])
    assert title(one) == "Mine"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["bad_request", "overloaded", "cut_event", "empty_reply", "reset_mid"])
def test_a_failure_leaves_the_first_words(fault: str, one: Talk) -> None:
    sent = one.send("c", SLOW)
    one.sidecar.wait_event(sent["sessionId"], "message.delta")
    one.fake.fault(fault)
    assert one.end(sent)["reason"] == "end_turn"
    one.sidecar.wait_until(lambda: any(r.fault == fault for r in one.fake.requests), 5, "the fault")
    one.ask("[[say=second]]")

    assert title(one).startswith("How do punch cards work")
    assert one.sidecar.events(sent["sessionId"], "error") == []


def test_a_first_turn_that_fails_gets_no_title_of_the_models(one: Talk) -> None:
    assert one.ask(f"{PROMPT} [[fault=bad_request]]")["reason"] == "error"
    one.ask("[[say=second]]")
    assert not any(map(is_for_title, one.asked))


def test_words_ask_nobody(fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> None:
    talk = _talk("openai-chat", fake, spawn, tmp_path, how="words")
    talk.ask("How do punch cards work")
    talk.ask("[[say=second]]")

    assert title(talk) == "How do punch cards work"
    assert len(talk.asked) == 2
