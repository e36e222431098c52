"""What was refused is not history: neither by its size nor by the provider does a prompt weigh on later ones. The user
still sees it, and can send it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.fake_provider import FakeProvider, in_thread
from tests.blackbox.models.talk import Json, Talk
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(2)

BAD = "plutonium"
FINE = "[[say=fine]]"
HUGE = "lorem ipsum " * 30_000
SMALL = {"window": 8000, "compaction": {"enabled": False}}

REFUSED = {
    "by its size": HUGE,
    "by the provider's window": f"{BAD} [[fault=context_exceeded]]",
    "by a filter": f"{BAD} [[fault=prompt_blocked]]",
    "in words without a reason": f"{BAD} [[fault=bad_request]]",
    "for the size of the request": f"{BAD} [[fault=too_large]]",
}


@pytest.fixture
def openai(fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> Talk:
    return Talk("openai-chat", fake, spawn, tmp_path)


def used(talk: Talk) -> int:
    """Tokens of the newest request."""
    events = [event for seen in talk.sidecar.seen().values() for event in seen]
    manifests = [event["data"] for event in events if event["type"] == "context.assembled"]
    return int(manifests[-1]["used"])


def notices(talk: Talk, *codes: str) -> list[str]:
    events = [event for seen in talk.sidecar.seen().values() for event in seen if event["type"] == "notice"]
    told: list[str] = [event["data"]["code"] for event in events]
    return [code for code in told if code in codes]


def last(talk: Talk) -> str:
    return talk.asked[-1].body.decode()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("prompt", REFUSED.values(), ids=REFUSED)
def test_a_refused_prompt_is_not_sent_again_and_is_shown(prompt: str, talk: Talk) -> None:
    talk.sidecar.call("chat/open", chatId="c", config=SMALL)
    assert talk.ask("My name is Ada. [[say=hello]]")["reason"] == "end_turn"
    plain = used(talk)
    assert talk.ask(prompt)["reason"] == "error"
    assert talk.ask(FINE)["reason"] == "end_turn"

    assert "lorem" not in last(talk)
    assert BAD not in last(talk)
    assert "My name is Ada." in last(talk)
    assert used(talk) < plain + 60, "later prompts pay for what was refused"
    turns = talk.sidecar.call("chat/history", chatId="c")["turns"]
    assert [turn.get("refused", False) for turn in turns] == [False, True, False]
    assert turns[1]["items"][0]["text"] == prompt


def test_a_hello_after_six_hundred_thousand_words_costs_a_hello(openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 200_000})
    openai.sidecar.call("prompt/send", chatId="c", promptId="huge", text="word " * 600_000)
    openai.sidecar.wait_event(
        openai.sidecar.call("chat/open", chatId="c")["sessionId"], lambda event: event["type"] == "turn.ended"
    )
    assert openai.ask("hello [[say=hello]]")["reason"] == "end_turn"
    assert used(openai) < 1000


@pytest.mark.parametrize("delivery", ["steer", "queue", "interrupt"])
def test_a_prompt_that_is_too_large_during_a_turn_is_not_paid_for_later(delivery: str, openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 50_000})
    running = openai.send("c", "[[n=40]] [[delay=20]]")
    openai.sidecar.wait_event(running["sessionId"], lambda event: event["type"] == "message.delta")
    huge = openai.send("c", "word " * 60_000, delivery=delivery)
    assert openai.end(running)["reason"] in ("error", "cancelled", "end_turn")
    assert openai.end(huge)["reason"] == "error"
    assert [openai.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
    assert used(openai) < 1000


@pytest.mark.sampled(1)
@pytest.mark.parametrize("from_", ["start", "here"])
def test_a_refused_prompt_is_sent_again_by_retry(from_: str, talk: Talk) -> None:
    talk.sidecar.call("chat/open", chatId="c", config=SMALL)
    talk.ask(FINE)
    assert talk.ask("word " * 9000 + "[[say=at last]]")["reason"] == "error"
    talk.sidecar.call("chat/configure", chatId="c", set={"window": 100_000})
    again = talk.sidecar.call("turn/retry", chatId="c", promptId="again", **{"from": from_})

    assert talk.end(again)["reason"] == "end_turn"
    assert last(talk).count("word word word") >= 1
    turns = talk.sidecar.call("chat/history", chatId="c")["turns"]
    assert [turn.get("refused", False) for turn in turns] == [False, False]
    assert talk.ask("[[say=more]]")["reason"] == "end_turn"
    assert "word word word" in last(talk), "what was answered is history"


@pytest.mark.sampled(1)
def test_a_refused_prompt_is_edited_and_sent(talk: Talk) -> None:
    sent = talk.send("c", f"{BAD} [[fault=prompt_blocked]]")
    assert talk.end(sent)["error"]["data"]["reason"] == "refused"
    edited = talk.send("c", "something kinder [[say=fine]]", replace={"turnId": sent["turnId"]})
    assert talk.end(edited)["reason"] == "end_turn"
    assert BAD not in last(talk)


@pytest.mark.sampled(1)
def test_forks_and_imports_keep_what_was_refused_out(talk: Talk) -> None:
    talk.ask(FINE)
    assert talk.ask(f"{BAD} [[fault=prompt_blocked]]")["reason"] == "error"
    talk.sidecar.call("chat/fork", chatId="c", newChatId="f")
    talk.sidecar.call("chat/import", chatId="i", data=talk.sidecar.call("chat/export", chatId="c")["data"])
    for chat in ("f", "i"):
        assert talk.ask(FINE, chat=chat)["reason"] == "end_turn"
        assert BAD not in last(talk)
        shown = talk.sidecar.call("chat/history", chatId=chat)["turns"]
        assert [turn.get("refused", False) for turn in shown] == [False, True, False]


@pytest.mark.sampled(1)
def test_another_process_keeps_what_was_refused_out(
    api: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path
) -> None:
    first, second = Talk(api, fake, spawn, tmp_path), Talk(api, fake, spawn, tmp_path)
    assert first.ask(f"{BAD} [[fault=prompt_blocked]]")["reason"] == "error"
    second.sidecar.call("chat/open", chatId="c")
    assert second.ask(FINE)["reason"] == "end_turn"
    assert BAD not in last(second)


@pytest.mark.sampled(1)
def test_a_queue_goes_on_behind_a_refused_prompt(talk: Talk) -> None:
    slow = talk.send("c", "[[n=20]] [[delay=20]]")
    bad = talk.send("c", f"{BAD} [[fault=prompt_blocked]]")
    good = talk.send("c", FINE)
    assert talk.end(slow)["reason"] == "end_turn"
    assert talk.end(bad)["reason"] == "error"
    talk.sidecar.call("prompt/resume", chatId="c")
    assert talk.end(good)["reason"] == "end_turn"
    assert BAD not in last(talk)


def test_a_wish_in_a_refused_prompt_is_no_standing_wish(openai: Talk) -> None:
    assert openai.ask(f"Always answer in {BAD}. [[fault=prompt_blocked]]")["reason"] == "error"
    assert openai.ask(FINE)["reason"] == "end_turn"
    assert BAD not in last(openai)


def test_no_search_of_the_past_finds_a_refused_prompt(openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 4000, "compaction": {"enabled": False}})
    assert openai.ask(f"The secret of {BAD} is 4711. [[fault=prompt_blocked]]")["reason"] == "error"
    for number in range(12):
        assert openai.ask(f"Tell me of mill {number}. {'grain ' * 100} [[say=ok]]")["reason"] == "end_turn"
    assert openai.ask(f"What did I say earlier about {BAD}? [[say=well]]")["reason"] == "end_turn"
    assert "4711" not in last(openai)


def test_a_compaction_summarises_no_refused_prompt(openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 8000})
    assert openai.ask(f"The secret of {BAD} is 4711. [[fault=prompt_blocked]]")["reason"] == "error"
    for number in range(8):
        assert openai.ask(f"Mill {number} grinds. {'grain ' * 60} [[say=ok]]")["reason"] == "end_turn"
    before = len(openai.asked)
    openai.sidecar.call("chat/compact", chatId="c")
    session = openai.sidecar.call("chat/open", chatId="c")["sessionId"]
    ended = openai.sidecar.wait_event(session, lambda event: event["type"] == "compaction.ended")
    assert ended["data"]["item"]["status"] == "completed"
    assert openai.ask(FINE)["reason"] == "end_turn"
    later = "".join(one.body.decode() for one in openai.asked[before:])
    assert "4711" not in later


@pytest.fixture
def policed(api: str, spawn: Spawner, tmp_path: Path) -> Iterator[Talk]:
    """With a provider that refuses every request that has a forbidden word anywhere."""
    with in_thread(forbidden=BAD) as fake:
        yield Talk(api, fake, spawn, tmp_path)


@pytest.mark.sampled(1)
def test_imported_content_that_the_provider_refuses_kills_no_chat(policed: Talk) -> None:
    lines = [{"role": "user", "text": f"about {BAD}"}, {"role": "assistant", "text": "hm"}]
    policed.sidecar.call("chat/import", chatId="c", data="\n".join(map(json.dumps, lines)))
    ends = [policed.ask(f"turn {number}; {FINE}")["reason"] for number in range(3)]

    assert ends == ["end_turn"] * 3
    assert notices(policed, "history_left_out") == ["history_left_out"]
    assert len(policed.asked) == 4, "the history was tried again and again"
    assert "turn 0;" in last(policed)
    assert "turn 1;" in last(policed)


@pytest.mark.sampled(1)
def test_a_fork_of_it_stays_alive(policed: Talk) -> None:
    policed.sidecar.call("chat/import", chatId="c", data=f'{{"role":"user","text":"about {BAD}"}}')
    assert policed.ask(FINE)["reason"] == "end_turn"
    policed.sidecar.call("chat/fork", chatId="c", newChatId="f")
    assert [policed.ask(FINE, chat="f")["reason"] for _ in range(2)] == ["end_turn"] * 2


@pytest.mark.sampled(1)
def test_a_tool_result_that_the_provider_refuses_is_left_out_later(
    api: str, spawn: Spawner, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "note.txt").write_text(f"all about {BAD}\n")
    with in_thread(forbidden=f"about {BAD}") as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        config: Json = {"chatId": "c", "projectPath": str(project)}
        talk.sidecar.call("chat/open", **config)
        ended = talk.ask('[[tool=read_file:{"path": "note.txt"}]][[next]][[say=read]]')
        assert ended["error"]["data"]["reason"] == "refused"
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
        assert "the request that carried this was refused" in last(talk)
        assert "context_left_out" in notices(talk, "context_left_out"), "the file that was read is open"
        shown = talk.sidecar.call("chat/history", chatId="c")["turns"][0]
        assert ("refused" in shown, BAD in str(shown)) == (False, True), "the user still sees it"


@pytest.mark.sampled(1)
def test_what_is_left_out_after_a_refusal_is_reported_as_dropped(
    api: str, spawn: Spawner, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "note.txt").write_text(f"all about {BAD}\n")
    with in_thread(forbidden=f"about {BAD}") as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        talk.sidecar.call("chat/open", chatId="c", projectPath=str(project))
        talk.sidecar.call("files/open", chatId="c", path=str(project / "note.txt"), pinned=True)
        sent = talk.send("c", '[[tool=list_dir:{"path": "."}]][[next]][[say=fine]]')
        assert talk.end(sent)["reason"] == "end_turn"
        assert [BAD in request.body.decode() for request in talk.asked] == [True, False, False]
        read = [
            talk.sidecar.call("chat/context", chatId="c", turnId=sent["turnId"], request=number)
            for number in (1, 2, 3)
        ]
    blocks = [next(block for block in found["blocks"] if block["id"] == "file:note.txt") for found in read]
    assert [(block["included"], block["gate"]) for block in blocks] == [
        ("full", "pinned"),
        ("dropped", "refused"),
        ("dropped", "refused"),
    ]
    assert read[0]["used"] > read[1]["used"]
    for found in read:
        sent_blocks = [block for block in found["blocks"] if block["included"] != "dropped"]
        assert sum(block["tokens"] for block in sent_blocks) == found["used"]


@pytest.mark.sampled(1)
def test_a_refused_steer_is_left_out_later(api: str, spawn: Spawner, tmp_path: Path) -> None:
    with in_thread(forbidden=f"about {BAD}") as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        sent = talk.send("c", "[[n=30]] [[delay=20]]")
        talk.sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")
        talk.send("c", f"about {BAD}", delivery="steer")
        assert talk.end(sent)["error"]["data"]["reason"] == "refused"
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
