"""Files in a chat: a copy enters once, changes are appended as diffs, and a compaction gathers one copy at the top."""

from __future__ import annotations

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.fencing import fences
from tests.blackbox.window.room import Room, block, included, messages, sent_text, text_of
from tests.blackbox.work.workbench import Workbench

NAME = "src/zebra.py"
SUMMARY = "summary of the chat so far"
DIFF = f"changes of file {NAME} since it was sent"


def _text(*changed: int) -> str:
    """A file of 120 lines; those named are changed."""
    return "".join(f"VALUE_{line} = {'new' if line in changed else 'old'}_{line}\n" for line in range(120))


def _labels(room: Room, request: int = -1) -> list[str]:
    """The fences of a request, from its first message to its last."""
    found = [message for message in messages(room.asked[request]) if message["role"] == "user"]
    return [fence.label for message in found for fence in fences(text_of(message))[0]]


def _by_hand(bench: Workbench, fake: FakeProvider) -> Room:
    """Compacted only on request, and nothing comes back by search."""
    gates, ratios = {"retrieval": "never"}, {"background": 1.0, "blocking": 1.0}
    return Room(bench, fake, "openai:fake-1", 200_000, compaction=ratios, gates=gates)


def _top(room: Room) -> str:
    """The first message after the instructions."""
    return text_of(next(message for message in messages(room.asked[-1]) if message["role"] == "user"))


@pytest.fixture
def shown(large: Room) -> Room:
    large.show(NAME, _text(), pin=True)
    large.ask("Explain the values [[say=Well]]")
    return large


def test_a_change_is_appended_as_a_diff_and_what_was_sent_stays(shown: Room) -> None:
    first = messages(shown.asked[-1])
    shown.write(NAME, _text(7))
    told = shown.preview(f"Explain {NAME}", includeText=True)
    shown.ask("Explain the values [[say=Well]]")

    last = messages(shown.asked[-1])
    assert last[: len(first)] == first, "a cache keeps it"
    tail = text_of(last[-1])
    assert "-VALUE_7 = old_7\n+VALUE_7 = new_7\n" in tail
    assert "VALUE_30" not in tail
    assert _labels(shown) == [f"file {NAME}", DIFF]
    assert block(told, f"file:{NAME}")["included"] == "full"
    assert "+VALUE_7 = new_7" in block(told, f"file:{NAME}")["text"]
    assert block(shown.preview("And now?"), f"file:{NAME}")["gate"] == "in-history"


def test_diffs_follow_each_other_until_the_file_itself_is_shorter(shown: Room) -> None:
    changed: list[int] = []
    for line in range(0, 120, 8):
        changed.append(line)
        shown.write(NAME, _text(*changed))
        shown.ask("Explain the values [[say=Well]]")
        if _labels(shown).count(f"file {NAME}") == 2:
            break
    labels = _labels(shown)
    assert labels[0] == labels[-1] == f"file {NAME}"
    assert len(labels) >= 4, "several diffs came before it"
    assert set(labels[1:-1]) == {DIFF}
    for request in range(1, len(shown.asked)):
        assert f"VALUE_{(request - 1) * 8} = new" in text_of(messages(shown.asked[request])[-1])


def test_a_diff_is_the_same_after_a_restart(shown: Room) -> None:
    shown.write(NAME, _text(7))
    shown.ask("Explain the values [[say=Well]]")
    before = messages(shown.asked[-1])
    shown.restart()
    shown.ask("Explain the values again [[say=Well]]")
    assert messages(shown.asked[-1])[: len(before)] == before
    assert _labels(shown) == [f"file {NAME}", DIFF]


def test_a_compaction_gathers_one_copy_at_the_top(bench: Workbench, fake: FakeProvider) -> None:
    room = _by_hand(bench, fake)
    room.show(NAME, _text(), pin=True)
    for number in range(3):
        room.write(NAME, _text(*range(number)))
        room.ask(f"Step {number}: explain the values {'fig ' * 100} [[say=Done]]")
    assert _labels(room) == [f"file {NAME}", DIFF, DIFF]
    room.sidecar.call("chat/compact", chatId="c")
    room.ask("Explain the values [[say=Well]]")

    assert _labels(room) == [SUMMARY, f"file {NAME}"]
    assert "VALUE_1 = new_1" in _top(room), "the version that the model knew last"
    assert sent_text(room.asked[-1]).count("VALUE_30 = ") == 1
    found = block(room.preview("And now?", includeText=True), "gathered")
    assert (found["kind"], found["gate"]) == ("openFiles", "compacted")
    assert NAME in found["label"]

    room.write(NAME, _text(0, 1, 50))
    room.ask("Explain the values [[say=Well]]")
    assert _labels(room) == [SUMMARY, f"file {NAME}", DIFF]
    assert "+VALUE_50 = new_50" in text_of(messages(room.asked[-1])[-1])
    room.restart()
    room.ask("Explain the values [[say=Well]]")
    assert _labels(room) == [SUMMARY, f"file {NAME}", DIFF]

    room.sidecar.call("chat/uncompact", chatId="c")
    told = {found["id"] for found in included(room.preview("And now?"))}
    assert not {"summary", "gathered"} & told
    assert not room.refused


def test_a_second_compaction_gathers_the_newer_copy_and_leaves_out_what_was_closed(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = _by_hand(bench, fake)
    room.show(NAME, _text(), pin=True)
    room.show("src/closed.py", "CLOSED = 'soon'\n", pin=True)
    for round in range(2):
        for number in range(4):
            room.ask(f"Round {round}, step {number}: explain {'fig ' * 100} [[say=Done]]")
        room.write(NAME, _text(round))
        room.ask("Explain the values [[say=Well]]")
        if round:
            room.sidecar.call("files/close", chatId="c", path=str(room.project / "src/closed.py"))
        room.sidecar.call("chat/compact", chatId="c")
    room.ask("Explain the values [[say=Well]]")

    assert _labels(room) == [SUMMARY, f"file {NAME}"]
    assert "VALUE_1 = new_1" in _top(room)
    assert "CLOSED" not in sent_text(room.asked[-1])


def test_a_file_whose_turn_no_longer_fits_is_sent_again_and_only_once(
    bench: Workbench, fake: FakeProvider
) -> None:
    room = Room(bench, fake, compaction={"enabled": False})
    room.show(NAME, _text(), pin=True)
    for number in range(16):
        room.ask(f"Step {number}: {'fig ' * 350} [[say=Done {number}]]")
        body = sent_text(room.asked[-1])
        assert body.count("VALUE_30 = ") == 1, f"in request {number}"
    assert not room.refused
    assert "Step 0:" not in _top(room), "the turn that brought it was never left out"
