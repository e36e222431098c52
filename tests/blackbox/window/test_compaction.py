"""Compaction: when it runs, what it keeps, that it loses nothing, and that it can be taken back and be killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.room import Json, Room, block, included, messages, plain, say_tool, sent_text
from tests.blackbox.work.workbench import Workbench

pytestmark = pytest.mark.slow

GOAL = "Build a parser for the Zebrawood file format, in Python, without any library."
SUMMARY = "summary of the chat so far"
ROOMY: Json = {"background": 1.0, "blocking": 1.0}
"""Ratios at which nothing is compacted by itself before the window is full."""


def _talk(room: Room, turns: int, words: int = 200, start: int = 1) -> list[str]:
    """Turns of so many words each; the first one states the goal."""
    sent = []
    for number in range(start, start + turns):
        first = f"{GOAL} " if number == 1 else ""
        text = f"{first}Step {number}: {'fig ' * words}marker{number}. [[say=Done {number}]]"
        sent.append(str(room.ask(text)["turnId"]))
    return sent


def _answer(**lists: Any) -> str:
    """What makes the fake answer with a summary."""
    return f"[[say={json.dumps(lists)}]]"


def _ended(room: Room) -> Json:
    event = room.sidecar.wait_event(room.session, "compaction.ended")
    data: Json = event["data"]
    return data


def _wait_for_a_summariser(room: Room) -> None:
    """Until the request for a summary has come in, asking the sidecar for something small meanwhile."""
    for _ in range(5000):
        if room.summarised:
            return
        room.sidecar.call("rules/list", chatId="c")
    raise AssertionError("no request for a summary")


@pytest.fixture
def quiet(bench: Workbench, fake: FakeProvider) -> Room:
    """Only compacted by hand, or when the window is full."""
    return Room(bench, fake, compaction=ROOMY)


def test_a_chat_that_fills_its_window_is_compacted_beside_it(room: Room) -> None:
    for number in range(1, 60):
        _talk(room, 1, 250, number)
        if room.compactions("started"):
            break
    ended = _ended(room)

    assert ended["trigger"] == "background"
    assert ended["item"]["status"] == "completed"
    assert ended["turns"] > 0
    assert ended["tokensAfter"] < ended["tokensBefore"]
    assert room.compactions("started")[0]["tokensBefore"] == ended["tokensBefore"]
    assert ended["item"]["summary"]
    budget = room.preview("x")["budget"]
    assert ended["tokensAfter"] <= 0.6 * budget, "compact rarely and in big steps"
    room.ask("And on it goes [[say=Yes]]")
    manifest = room.preview("And now?", includeText=True)
    assert GOAL in block(manifest, "summary")["text"]
    assert not room.refused


def test_a_full_window_is_compacted_before_the_turn_that_needs_the_room(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, compaction={"background": 1.0, "blocking": 0.85})
    for number in range(1, 30):
        [turn] = _talk(room, 1, 300, number)
        if room.compactions("ended"):
            break
    [ended] = room.compactions("ended")

    assert ended["trigger"] == "blocking"
    kinds = [event["type"] for event in room.sidecar.events(room.session)]
    last = len(kinds) - 1 - kinds[::-1].index("context.assembled")
    assert kinds.index("compaction.started") < kinds.index("compaction.ended") < last
    assert block(room.assembled({"sessionId": room.session, "turnId": turn}), "summary")["included"] == "full"
    assert not room.refused


def test_by_hand_with_words_for_the_summary(quiet: Room) -> None:
    _talk(quiet, 12, 300)
    wish = "Keep the name of the customer. " + _answer(
        decisions=["The parser is written by hand"], files=[], facts=[]
    )
    would = quiet.sidecar.call("chat/compact", chatId="c", dryRun=True)
    assert would["compactionId"] is None
    assert would["turns"] > 0
    assert not quiet.compactions("started")
    assert not quiet.summarised
    done = quiet.sidecar.call("chat/compact", chatId="c", instructions=wish)

    assert done["compactionId"]
    assert done["turns"] == would["turns"]
    assert "Keep the name of the customer." in sent_text(quiet.summarised[-1])
    ended = _ended(quiet)
    assert ended["trigger"] == "manual"
    assert "The parser is written by hand" in ended["item"]["summary"]
    assert GOAL in ended["item"]["summary"]
    quiet.ask("What is next? [[say=More]]")
    body = sent_text(quiet.asked[-1])
    assert body.count(SUMMARY) == 1
    assert "The parser is written by hand" in body


def test_nothing_old_enough_is_said_so(quiet: Room) -> None:
    _talk(quiet, 1)
    assert quiet.sidecar.call("chat/compact", chatId="c")["compactionId"] is None
    assert not quiet.compactions("started")
    assert quiet.sidecar.refused("chat/uncompact", chatId="c").data["name"] == "not_found"


def test_postponed_it_waits_for_so_many_turns(bench: Workbench, fake: FakeProvider) -> None:
    room = Room(bench, fake, compaction={"background": 0.8, "blocking": 1.0})
    room.sidecar.call("chat/compact", chatId="c", postponeTurns=13)
    _talk(room, 12, 280)
    manifest = room.preview("And?")
    assert manifest["used"] > 0.8 * manifest["budget"]
    assert not room.compactions("started"), "postponed"
    _talk(room, 1, 280, 13)
    assert _ended(room)["trigger"] == "background"


def test_switched_off_nothing_is_compacted_and_everything_still_fits(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, compaction={"enabled": False})
    _talk(room, 20, 400)
    assert not room.compactions("started")
    assert not room.refused
    refusal = room.sidecar.refused("chat/configure", chatId="c", set={"compaction": {"background": 80}})
    assert "0.8" in str(refusal)


def test_undone_the_turns_are_back_and_the_next_one_waits_until_the_window_is_full(room: Room) -> None:
    for number in range(1, 30):
        [turn] = _talk(room, 1, 300, number)
        told = room.assembled({"sessionId": room.session, "turnId": turn})
        if told["used"] >= 0.8 * told["budget"]:
            break
    _ended(room)
    before = room.preview("And?", includeText=True)
    done = room.sidecar.call("chat/uncompact", chatId="c")
    assert room.compactions("undone")[-1]["compactionId"] == done["compactionId"]
    after = room.preview("And?", includeText=True)

    assert block(before, "summary")["included"] == "full"
    assert "summary" not in {found["id"] for found in after["blocks"]}
    assert block(after, "history")["included"] == "full"
    assert f"{GOAL} Step 1" in block(after, "history")["text"]
    _talk(room, 1, 100, number + 1)
    room.preview("And?")
    assert len(room.compactions("started")) == 1, "not at once again"
    for later in range(number + 2, 40):
        _talk(room, 1, 300, later)
        if len(room.compactions("ended")) > 1:
            break
    assert room.compactions("ended")[1]["trigger"] == "blocking"
    assert not room.refused


def test_a_compaction_makes_room_for_many_turns(room: Room) -> None:
    """Compact rarely and in big steps: from 0.80 of the budget to about 0.40 of it."""
    _talk(room, 24, 300)
    room.preview("And?")
    ended = room.compactions("ended")
    assert 1 <= len(ended) <= 4, [(end["tokensBefore"], end["tokensAfter"]) for end in ended]
    assert all(end["tokensAfter"] < end["tokensBefore"] for end in ended)


def test_where_nothing_can_be_gained_nothing_is_compacted(bench: Workbench, fake: FakeProvider) -> None:
    """Most of this window is tools: the few short turns are not what fills it."""
    room = Room(bench, fake, compaction={"background": 0.3, "blocking": 0.35})
    _talk(room, 6, 20)
    room.preview("And?")
    useless = [end for end in room.compactions("ended") if end["tokensAfter"] >= end["tokensBefore"]]
    assert useless == []


def test_old_outputs_are_masked_before_anything_is_summarised(quiet: Room) -> None:
    (quiet.project / "numbers.txt").write_text("".join(f"{number}\n" for number in range(1, 600)))
    quiet.sidecar.call("chat/configure", chatId="c", set={"tools": {"allow": ["read_file", "run_command"]}})
    quiet.ask(f"{GOAL} {say_tool('read_file', path='numbers.txt')}")
    quiet.sidecar.call("files/clear", chatId="c")
    quiet.ask(say_tool("run_command", command="seq 2000 2100; echo the-end"))
    _talk(quiet, 3, 20, 2)
    quiet.sidecar.call("chat/configure", chatId="c", set={"compaction": {"background": 0.3, "blocking": 1.0}})
    _talk(quiet, 1, 20, 5)
    ended = _ended(quiet)

    assert ended["turns"] == 0
    assert ended["masked"]
    assert not quiet.summarised, "masking costs nothing"
    assert ended["tokensAfter"] < ended["tokensBefore"]
    quiet.ask("And now? [[say=Well]]")
    results = [message for message in messages(quiet.asked[-1]) if message["role"] == "tool"]
    assert len(results) == 2
    assert "\t300\n" not in results[0]["content"]
    assert "left out; search_context or get_output finds them in out:" in results[0]["content"]
    assert GOAL in sent_text(quiet.asked[-1])
    assert not quiet.refused


def test_a_summary_is_brought_up_to_date_and_never_stands_twice(quiet: Room) -> None:
    _talk(quiet, 10, 300)
    say = _answer(decisions=["First decision: tabs"], constraints=[])
    quiet.sidecar.call("chat/compact", chatId="c", instructions=say)
    _talk(quiet, 10, 300, 11)
    say = _answer(decisions=["First decision: tabs", "Second decision: UTF-8"], constraints=[])
    quiet.sidecar.call("chat/compact", chatId="c", instructions=say)
    quiet.ask("Go on [[say=Yes]]")

    assert "First decision: tabs" in sent_text(quiet.summarised[-1]), "the summary so far is material"
    first, last = quiet.compactions("ended")[0], quiet.compactions("ended")[-1]
    assert first["compactionId"] != last["compactionId"]
    body = sent_text(quiet.asked[-1])
    assert body.count(SUMMARY) == 1
    assert body.count(GOAL) == 1
    for words in ("First decision: tabs", "Second decision: UTF-8"):
        assert words in body


@pytest.mark.parametrize(
    "trouble",
    [
        lambda room: room.fake.fault("server_error"),
        lambda room: room.fake.fault("reset_mid"),
        lambda room: room.fake.fault("html_200"),
        lambda room: room.fake.fault("context_exceeded"),
        None,
    ],
    ids=["error", "reset", "html", "too-large", "nonsense"],
)
def test_without_a_usable_answer_the_summary_is_extracted(
    quiet: Room, trouble: Callable[[Room], None] | None
) -> None:
    _talk(quiet, 8, 300)
    before = plain(quiet.preview("And?"))
    if trouble:
        trouble(quiet)
    done = quiet.sidecar.call("chat/compact", chatId="c", instructions="[[say=I would rather not]]")

    assert done["compactionId"]
    ended = _ended(quiet)
    assert ended["item"]["status"] == "completed"
    assert GOAL in ended["item"]["summary"]
    quiet.ask("Which step had marker2? [[say=2]]")
    assert "marker2" in sent_text(quiet.asked[-1])
    quiet.sidecar.call("chat/uncompact", chatId="c")
    assert f"{GOAL} Step 1" in block(quiet.preview("And?", includeText=True), "history")["text"]
    as_before = [found for found in plain(quiet.preview("And?")) if found["kind"] != "retrieval"]
    assert [found["id"] for found in as_before] == [found["id"] for found in before]


def _trouble(events: list[Json], old: list[Json], now: list[Json]) -> str | None:
    """What is wrong with a chat that was killed in a compaction: it must be in the old or in the new state."""
    started = [event for event in events if event["type"] == "compaction.started"]
    ended = [event["data"]["item"]["status"] for event in events if event["type"] == "compaction.ended"]
    if len(started) != len(ended):
        return "a start without its end"
    if ended and ended[-1] == "completed":
        return None if "summary" in {found["kind"] for found in now} else "neither: no summary is sent"
    if any(status != "interrupted" for status in ended):
        return f"ends as {ended}"
    return None if now == old else "neither: not what was sent before"


def test_a_state_between_old_and_new_is_found_out() -> None:
    """Twins that lose the end, the summary or the old state."""
    start: Json = {"type": "compaction.started", "data": {}}
    done: Json = {"type": "compaction.ended", "data": {"item": {"status": "completed"}}}
    cut: Json = {"type": "compaction.ended", "data": {"item": {"status": "interrupted"}}}
    old, new = [{"kind": "history", "tokens": 9}], [{"kind": "summary", "tokens": 3}]
    assert _trouble([start, done], old, new) is None
    assert _trouble([start, cut], old, old) is None
    assert _trouble([], old, old) is None
    assert _trouble([start], old, old) == "a start without its end"
    assert _trouble([start, done], old, old) == "neither: no summary is sent"
    assert _trouble([start, cut], old, new) == "neither: not what was sent before"
    assert _trouble([], old, []) == "neither: not what was sent before"


@pytest.mark.parametrize("point", ["asked", "started", "model", "mid", "ended"])
def test_killed_at_any_point_the_old_or_the_new_state_holds(quiet: Room, point: str) -> None:
    _talk(quiet, 8, 300)
    old = plain(quiet.preview("And?"))
    if point in ("started", "model", "mid"):
        quiet.fake.fault("hang_mid" if point == "mid" else "hang_before_headers")
    quiet.sidecar.ask("chat/compact", chatId="c", instructions=_answer(decisions=["Tabs it is"]))
    if point != "asked":
        quiet.sidecar.wait_event(
            quiet.session, "compaction.ended" if point == "ended" else "compaction.started"
        )
    if point in ("model", "mid"):
        _wait_for_a_summariser(quiet)
    quiet.restart()

    events = quiet.sidecar.journal(quiet.session)
    ended = [event["data"] for event in events if event["type"] == "compaction.ended"]
    assert _trouble(events, old, plain(quiet.preview("And?"))) is None
    if point in ("started", "model", "mid"):
        assert [end["item"]["status"] for end in ended] == ["interrupted"]
    if point == "ended":
        assert ended[-1]["item"]["status"] == "completed"
    quiet.fake.clear()
    quiet.ask("And? [[say=Here I am]]")
    assert GOAL in sent_text(quiet.asked[-1])
    assert not quiet.refused


def test_a_turn_killed_while_it_waits_for_room_leaves_a_chat_that_answers(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, compaction=ROOMY)
    _talk(room, 8, 300)
    room.sidecar.call("chat/configure", chatId="c", set={"compaction": {"background": 1.0, "blocking": 0.5}})
    fake.fault("hang_before_headers")
    room.sidecar.say("Go on", chatId="c")
    room.sidecar.wait_event(room.session, "compaction.started")
    room.restart()

    ended = [event for event in room.sidecar.journal(room.session) if event["type"] == "compaction.ended"]
    assert [event["data"]["item"]["status"] for event in ended] == ["interrupted"]
    fake.clear()
    room.ask("And? [[say=Here I am]]")
    ended = room.compactions("ended")
    assert ended[-1]["trigger"] == "blocking"
    assert ended[-1]["item"]["status"] == "completed"
    assert not room.refused


def test_a_rewind_to_before_a_compaction_and_back(quiet: Room) -> None:
    turns = _talk(quiet, 10, 250)
    quiet.sidecar.call("chat/compact", chatId="c")
    compacted = plain(quiet.preview("And?"))
    assert "summary" in {found["id"] for found in compacted}

    quiet.sidecar.call("chat/rewind", chatId="c", before={"turnId": turns[1]})
    early = quiet.preview("And?", includeText=True)
    assert "summary" not in {found["id"] for found in early["blocks"]}
    assert "marker1." in block(early, "history")["text"]
    assert "marker2." not in block(early, "history")["text"]

    quiet.sidecar.call("chat/rewind", chatId="c", to={"turnId": turns[-1]})
    assert plain(quiet.preview("And?")) == compacted


def test_open_files_and_changes_are_there_after_a_compaction_and_only_once(quiet: Room) -> None:
    quiet.show("src/alpha.py", "def alpha():\n    return 'only-once'\n", pin=True)
    _talk(quiet, 1, 200)
    quiet.edit("src/beta.py", "BETA = 1\n")
    _talk(quiet, 9, 250, 2)
    quiet.sidecar.call("chat/compact", chatId="c")
    assert _ended(quiet)["turns"] > 2
    quiet.ask("What is next? [[say=More]]")

    body = sent_text(quiet.asked[-1])
    assert body.count("only-once") == 1
    assert body.count(GOAL) == 1
    assert "src/beta.py: New file" in body
    manifest = quiet.preview("And?")
    assert {"summary", "patches"} <= {found["id"] for found in included(manifest)}


def test_the_command_compacts_and_tells_what_it_did(quiet: Room) -> None:
    _talk(quiet, 8, 300)
    quiet.sidecar.say("/compact Keep the goal", chatId="c")
    assert _ended(quiet)["trigger"] == "manual"
    result = quiet.sidecar.wait_event(quiet.session, "command.result")
    assert result["data"]["data"]["compactionId"] == _ended(quiet)["compactionId"]
