"""What of a chat a model is sent: the newest whole turns that fit, in order, valid for every API, whatever happened."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from sidecar.fake_provider import FakeProvider, Model, Recorded, in_thread
from tests.blackbox.models.talk import APIS, Json, Talk
from tests.support.patience import PATIENCE_S
from tests.support.sidecar import EventTest
from tests.support.spawner import Spawner
from tests.unit.fake_provider.images import PNG

pytestmark = pytest.mark.sampled(2)

PROVIDERS = list(APIS.values())


def turns_in(request: Recorded) -> list[int]:
    """The numbers of the prompts `turn N` in a request, in order."""
    return [int(number) for number in re.findall(r"turn (\d+);", request.body.decode())]


def rules(talk: Talk) -> list[str]:
    """The rules that requests broke; a window that was exceeded is one."""
    return [request.rule for request in talk.asked if request.rule]


ALONE = {"compaction": {"enabled": False}, "gates": {"retrieval": "never"}}
"""Nothing but the newest turns: neither a summary nor what was found again."""


def manifests(talk: Talk, chat: str = "c") -> list[Json]:
    session = talk.sidecar.call("chat/open", chatId=chat)["sessionId"]
    return [event["data"] for event in talk.sidecar.events(session, "context.assembled")]


@pytest.fixture
def openai(fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> Talk:
    return Talk("openai-chat", fake, spawn, tmp_path)


@pytest.fixture
def vllm() -> Iterator[FakeProvider]:
    """Tells the windows of its models when it is asked for the list."""
    with in_thread(style="vllm", models=[Model("tight", window=8192)]) as fake:
        yield fake


@pytest.mark.sampled(1)
def test_only_the_newest_whole_turns_are_sent(talk: Talk) -> None:
    talk.sidecar.call("chat/open", chatId="c", config={"window": 1000, **ALONE})
    for number in range(14):
        tool = ' [[tool=look:{"at": "the window"}]]' if number % 3 == 0 else ""
        padding = "lorem ipsum " * (number % 5)
        assert talk.ask(f"turn {number}; {padding}[[say=fine {number}]]{tool}")["reason"] == "end_turn"

    assert rules(talk) == []
    firsts = [turns_in(request) for request in talk.asked]
    for sent in firsts:
        assert sent == list(range(sent[0], sent[-1] + 1)), "turns were left out or out of order"
    assert firsts[-1][0] > 0, "everything fitted: the test tests nothing"
    assert len(firsts[-1]) > 2
    for sent, later in pairwise(firsts):
        assert later[-1] - sent[-1] in (0, 1)


def test_what_was_assembled_adds_up(openai: Talk) -> None:
    openai.sidecar.call(
        "chat/open", chatId="c", config={"window": 1200, "instructions": "Be brief.", **ALONE}
    )
    for number in range(12):
        openai.ask(f"turn {number}; {'lorem ' * 20}[[say=fine]]")

    told = manifests(openai)
    assert len(told) == 12
    for number, (manifest, request) in enumerate(zip(told, openai.asked, strict=True)):
        assert manifest["used"] == sum(block["tokens"] for block in manifest["blocks"])
        assert manifest["used"] <= manifest["budget"] <= manifest["window"] - manifest["reserve"]
        assert (manifest["window"], manifest["model"], manifest["exact"]) == (1200, "openai:fake", False)
        history = [block["label"] for block in manifest["blocks"] if block["kind"] == "history"]
        turns = len(turns_in(request)) - 1
        assert history == ([f"{turns} turn{'s' if turns > 1 else ''}"] if number else [])
    assert told[-1]["used"] > told[-1]["budget"] / 2


def test_a_window_of_the_users_table_counts(fake: FakeProvider, spawn: Spawner, tmp_path: Path) -> None:
    talk = Talk("anthropic", fake, spawn, tmp_path, "models = { fake = { window = 900 } }")
    for number in range(10):
        talk.ask(f"turn {number}; {'lorem ' * 60}[[say=fine]]")

    assert {manifest["window"] for manifest in manifests(talk)} == {900}
    assert 1 < len(turns_in(talk.asked[-1])) < 8


@pytest.mark.sampled(1)
def test_everything_that_happens_to_turns_stays_valid(talk: Talk) -> None:
    """Failed, cut, cancelled, steered, retried, rewound, interrupted: and after each, a prompt that works."""
    number = iter(range(1000))

    def fine() -> None:
        assert talk.ask(f"turn {next(number)}; [[say=fine]]")["reason"] == "end_turn", rules(talk)

    fine()
    assert talk.ask("[[tool=look:{}]] [[tool=hear:{}]] [[next]] [[tool=look:{}]]")["reason"] == "end_turn"
    fine()
    for fault in ("bad_request", "cut_event", "error_mid", "unauthorized"):
        assert talk.ask(f"[[say=one two three]] [[fault={fault}]]")["reason"] == "error"
        fine()
    assert talk.ask("[[tool=look:{}]] [[next]] [[say=half of it]] [[fault=cut_event]]")["reason"] == "error"
    fine()

    sent = talk.send("c", "[[n=500]] [[delay=20]]")
    talk.sidecar.wait_event(sent["sessionId"], _delta_of(sent))
    talk.sidecar.call("turn/cancel", chatId="c")
    assert talk.end(sent)["reason"] == "cancelled"
    again = talk.sidecar.call("turn/retry", chatId="c", promptId="on", **{"from": "here"})
    talk.sidecar.wait_event(sent["sessionId"], _delta_of(again))
    urgent = talk.send("c", "[[say=urgent]]", delivery="interrupt")
    assert talk.end(urgent)["reason"] == "end_turn"
    fine()

    sent = talk.send("c", "[[n=10]] [[delay=10]]")
    talk.sidecar.wait_event(sent["sessionId"], _delta_of(sent))
    talk.send("c", "[[tool=look:{}]] [[next]] [[say=as you wish]]", delivery="steer")
    assert talk.end(sent)["reason"] == "end_turn"
    fine()
    retried = talk.sidecar.call("turn/retry", chatId="c", promptId="again")
    assert talk.end(retried)["reason"] == "end_turn"
    replaced = talk.send("c", "turn 999; [[say=instead]]", replace={"turnId": retried["turnId"]})
    assert talk.end(replaced)["reason"] == "end_turn"
    fine()
    assert rules(talk) == []
    assert turns_in(talk.asked[-1])[-2:] == [999, 9], "the turn that was replaced was sent, or another not"


@pytest.mark.sampled(1)
def test_a_cut_answer_that_goes_on_with_a_tool_call_is_valid(talk: Talk) -> None:
    talk.ask("[[say=one two three]] [[tool=look:{}]] [[fault=cut_event*1]]", overrides={"effort": "medium"})
    talk.fake.clear()
    go_on = talk.sidecar.call("turn/retry", chatId="c", promptId="on", **{"from": "here"})
    assert talk.end(go_on)["reason"] == "end_turn"
    steps = '[[think=Hm]] [[say=one]] [[fault=cut_event*1]] [[tool=look:{"a": 1}]] [[next]] [[say=two]]'
    assert talk.ask(steps, overrides={"effort": "medium"})["reason"] == "error"
    assert talk.ask(steps, overrides={"effort": "medium"})["reason"] == "end_turn"
    assert talk.ask("[[say=fine]]", overrides={"effort": "medium"})["reason"] == "end_turn"
    assert rules(talk) == []


def test_a_chat_that_goes_from_provider_to_provider(fake: FakeProvider, spawn: Spawner) -> None:
    sidecar = spawn(model="openai:fake", env=fake.env)
    prompts = ("[[think=Hm]] [[say=plain]]", "[[think=Hm]] [[say=see]] [[tool=look:{}]] [[tool=hear:{}]]")
    for round in range(2):
        for provider in PROVIDERS:
            for prompt in prompts:
                overrides = {"model": f"{provider}:fake", "effort": "medium"}
                ended = sidecar.run(f"turn {round}; {prompt}", chatId="c", overrides=overrides)
                assert ended["data"]["reason"] == "end_turn", (provider, ended["data"])

    asked = [request for request in fake.requests if request.method == "POST" and "show" not in request.path]
    assert [request.rule for request in asked if request.rule] == []
    assert len(turns_in(asked[-1])) == len(PROVIDERS) * 2 * len(prompts)


def _plain(*said: tuple[str, str]) -> str:
    return "\n".join(json.dumps({"role": role, "text": text}) for role, text in said)


FOREIGN = {
    "begins with the assistant": [("assistant", "Welcome!"), ("user", "Hi"), ("assistant", "Hello")],
    "the assistant alone": [("assistant", "One."), ("assistant", "Two.")],
    "a named speaker": [("Alice", "Hi, I am Alice"), ("assistant", "Hi"), ("Bob", "And I am Bob")],
    "users in a row": [("user", "one"), ("user", "two"), ("user", "three")],
    "nothing in it": [("user", ""), ("assistant", ""), ("user", " \n"), ("assistant", "\t")],
    "ends in a blank": [("user", "x"), ("assistant", "trailing blank \n")],
}


@pytest.mark.sampled(1)
def test_imported_chats_are_valid(talk: Talk) -> None:
    for number, (name, said) in enumerate(FOREIGN.items()):
        talk.sidecar.call("chat/import", chatId=f"c{number}", data=_plain(*said))
        assert talk.ask("turn 1; [[say=fine]]", chat=f"c{number}")["reason"] == "end_turn", name
        body = talk.asked[-1].body.decode()
        assert all(json.dumps(text.strip())[1:-1] in body for _, text in said), name

    assert rules(talk) == []


@pytest.mark.sampled(1)
def test_tools_of_an_imported_export_are_valid_whatever_their_ids(talk: Talk) -> None:
    def item(id: str, kind: str, **more: object) -> Json:
        return {"id": id, "turnId": "t", "type": kind, "status": "completed", "startedAt": 1, **more}

    items = [
        item("u", "user", content=[{"type": "text", "text": "Look"}]),
        item("an id with blanks: ä/…" + "x" * 80, "tool", name="read file!", input={"a": 1}, output={"text": "ok"}),
        item("b.2", "tool", name="", input=None),
        item("c", "tool", name="look", input=[1, 2], output={}, status="interrupted"),
        item("d", "message", text="Done"),
    ]  # fmt: skip
    turn = {"id": "t", "promptId": "p", "items": items, "status": "completed", "model": "", "engine": "x"}
    lines = [{"sidecar": "chat", "version": 1}, {"turn": {**turn, "startedAt": 1, "reason": "end_turn"}}]
    talk.sidecar.call("chat/import", chatId="c", data="\n".join(map(json.dumps, lines)))

    ended = talk.ask("[[say=fine]]")
    assert rules(talk) == []
    assert ended["reason"] == "end_turn"


def test_a_prompt_that_is_too_large_says_so_and_the_next_one_works(openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 1000, **ALONE})
    openai.ask("turn 0; [[say=fine]]")
    error = openai.ask("lorem ipsum " * 1000)["error"]
    available = manifests(openai)[0]["budget"]

    assert (error["code"], error["data"]["action"]) == (-32014, "edit_prompt")
    assert (error["data"]["needed"] > 2000, error["data"]["available"]) == (True, available)
    assert len(openai.asked) == 1, "it was sent in spite of it"
    assert openai.ask("turn 2; [[say=fine]]")["reason"] == "end_turn"
    assert rules(openai) == []
    assert manifests(openai)[-1]["used"] <= available


def test_an_answer_that_outgrew_the_window_is_gone_on_with_from_its_end(openai: Talk) -> None:
    openai.sidecar.call("chat/open", chatId="c", config={"window": 1000, **ALONE})
    sent = openai.send("c", "[[n=900]] [[delay=1]]")
    openai.sidecar.wait_until(lambda: len(openai.text(sent)) > 4000, PATIENCE_S, "a long answer")
    openai.sidecar.call("turn/cancel", chatId="c")
    again = openai.sidecar.call("turn/retry", chatId="c", promptId="on", **{"from": "here"})

    assert openai.end(again)["reason"] == "end_turn"
    assert rules(openai) == []
    assert "the beginning is left out" in openai.asked[-1].body.decode()
    assert len(openai.asked) == 2
    assert openai.ask("[[say=fine]]")["reason"] == "end_turn"


def test_an_unknown_window_is_asked_for_only_when_it_matters(openai: Talk) -> None:
    def lists() -> int:
        return sum(request.path.endswith("/models") for request in openai.fake.requests)

    for _ in range(3):
        sent = openai.send("c", "[[say=fine]]")
        openai.end(sent)
    assert lists() == 0
    openai.ask("lorem ipsum " * 1100 + "[[say=fine]]")
    assert lists() == 1
    openai.ask("lorem ipsum " * 1100 + "[[say=fine]]")
    assert lists() == 1, "it was asked again for what it does not know"
    notices = [event["data"] for event in openai.sidecar.events(sent["sessionId"], "notice")]
    assert notices == [{"code": "window_unknown", "params": {"model": "openai:fake", "assumed": 128_000}}]


def test_a_long_chat_asks_for_the_window_in_time(vllm: FakeProvider, spawn: Spawner, tmp_path: Path) -> None:
    """Each prompt is small, but the chat outgrows the window, which only the provider knows."""
    talk = Talk("openai-chat", vllm, spawn, tmp_path)
    talk.sidecar.call("chat/open", chatId="c", config={"model": "openai:tight", **ALONE})
    for number in range(12):
        ended = talk.ask(f"turn {number}; {'lorem ipsum ' * 250}[[say=fine]]")
        assert ended["reason"] == "end_turn", ended

    assert rules(talk) == []
    assert manifests(talk)[-1]["window"] == 8192
    assert 3 < len(turns_in(talk.asked[-1])) < 10


@pytest.mark.sampled(1)
def test_images_fall_out_of_a_small_window_with_their_turns(talk: Talk) -> None:
    talk.sidecar.call("chat/open", chatId="c", config={"window": 6000, **ALONE})
    image = {"type": "image", "data": PNG.data, "mimeType": "image/png"}
    for number in range(5):
        content = [{"type": "text", "text": f"turn {number}; [[say=seen]]"}, image]
        sent = talk.sidecar.call("prompt/send", chatId="c", promptId=f"i{number}", content=content)
        assert talk.end(sent)["reason"] == "end_turn"

    assert talk.asked[-1].body.decode().count(PNG.data) == 2
    assert turns_in(talk.asked[-1]) == [1, 2, 3, 4], "the words of a turn outlast its picture"
    assert rules(talk) == []


@pytest.mark.slow
def test_only_the_newest_images_are_sent_when_all_are_too_much(openai: Talk) -> None:
    for number in range(3):
        data = base64.b64decode(PNG.data) + bytes([number]) * 8_000_000
        kept = openai.sidecar.call("blob/put", data=base64.b64encode(data).decode(), mimeType="image/png")
        content = [
            {"type": "text", "text": f"turn {number}; [[say=seen]]"},
            {"type": "image", "blobId": kept["blobId"], "mimeType": "image/png"},
        ]
        sent = openai.sidecar.call("prompt/send", chatId="c", promptId=f"i{number}", content=content)
        assert openai.end(sent)["reason"] == "end_turn"

    last = openai.asked[-1].body
    assert (last.count(b"base64,"), last.count(b"is not shown")) == (2, 1)
    assert last.index(b"is not shown") < last.index(b"base64,")


KILLED_IN = {
    "the first word": "[[n=500]] [[delay=20]]",
    "a step after a tool call": "[[say=see]] [[tool=look:{}]] [[tool=hear:{}]] [[next]] [[n=500]] [[delay=20]]",
    "a thought": "[[think=one two three four five six]] [[delay=100]] [[n=9]]",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("moment", KILLED_IN)
def test_after_a_kill_the_history_is_valid_for_every_api(
    moment: str, fake: FakeProvider, spawn: Spawner, tmp_path: Path
) -> None:
    talk = Talk("anthropic", fake, spawn, tmp_path)
    sent = talk.send("c", KILLED_IN[moment], overrides={"effort": "medium"})
    talk.sidecar.wait_event(
        sent["sessionId"], _delta_of(sent, after="tool.ended" if "tool" in moment else None)
    )
    talk.sidecar.kill()

    later = Talk("anthropic", fake, spawn, tmp_path)
    for provider in PROVIDERS:
        ended = later.ask("[[say=see]] [[tool=look:{}]]", overrides={"model": f"{provider}:fake"})
        assert ended["reason"] == "end_turn", provider
    assert rules(later) == []


def _delta_of(sent: Json, after: str | None = None) -> EventTest:
    seen: list[str] = []

    def test(event: Json) -> bool:
        if event.get("turnId") == sent["turnId"]:
            seen.append(event["type"])
        return bool(seen) and seen[-1].endswith(".delta") and (after is None or after in seen)

    return test
