"""Session continuity, through the pipe: the state of the session is sent once after a restart or a compaction,
and once at a wish; kept to a number; never another chat's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider
from tests.blackbox.window.fencing import Fence, fences
from tests.blackbox.window.room import Json, Room, block, included, messages, say_tool, sent_text, text_of
from tests.blackbox.work.workbench import Workbench
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow

LABEL = "resume snapshot"
COMMIT = "git commit --allow-empty -m Begin the zebra"
GOAL = "Port the Zebrawood parser to Python."
MAX_TOKENS = 500
KINDS = ("context", "workflow", "navigation")


@pytest.fixture
def quiet(bench: Workbench, fake: FakeProvider) -> Room:
    """Never compacted by itself, and nothing comes back by itself: the fake would obey the markers in it."""
    return Room(bench, fake, compaction={"enabled": False}, gates={"retrieval": "never"})


def _work(room: Room, goal: str = GOAL, fill: int = 7, chat: str = "c") -> None:
    """A goal, a plan, a file, a commit, an error; then so much talk that none of it fits the window."""
    room.ask(f"{goal} [[say=Understood]]", chat)
    steps = [("Read the old one", "completed"), ("Write zebra.py", "in_progress"), ("Test it", "pending")]
    room.ask(_does("update_plan", plan=[{"step": step, "status": status} for step, status in steps]), chat)
    room.ask(_does("write_file", path="zebra.py", content="VALUE = 1\n"), chat)
    person = "-c user.name=A -c user.email=a@b.c"
    room.ask(
        _does("run_command", command=f"git add . && git {person} commit --allow-empty -m 'Begin the zebra'"),
        chat,
    )
    room.ask(_does("run_command", command="ls /nowhere/at-all"), chat)
    for number in range(fill):
        room.ask(f"Note {number}: {'fig ' * 700} [[say=Noted {number}]]", chat)


def _does(name: str, **input: Any) -> str:
    """A prompt at which the fake calls a tool; spelled so that only the call tells what it does."""
    spelled = "".join(f"\\u{ord(letter):04x}" if letter.isalpha() else letter for letter in json.dumps(input))
    return f"Go on. [[tool={name}:{spelled}]][[next]][[say=Done]]"


def _told(request: Any) -> list[Fence]:
    """The snapshots in a request."""
    found = [fence for message in messages(request) for fence in fences(text_of(message))[0]]
    return [fence for fence in found if fence.label == LABEL or fence.label.startswith("snapshot ")]


def _ask(room: Room, text: str, chat: str = "c") -> tuple[Json, Any]:
    """The turn and its first request."""
    before = len(room.asked)
    sent = room.ask(text, chat)
    return sent, room.asked[before]


def _blocks(manifest: Json) -> list[Json]:
    return [one for one in included(manifest) if one["id"] == "snapshot"]


def _items(room: Room, kind: str = "context", chat: str = "c") -> list[Json]:
    listed = room.sidecar.call("snapshots/list", chatId=chat)["items"]
    return [one for one in listed if one["kind"] == kind]


def _show(room: Room, id: str, chat: str = "c") -> Json:
    return room.sidecar.call("snapshots/show", chatId=chat, id=id)


def _settings(room: Room, **values: int) -> None:
    named = {f"session.{name}": value for name, value in values.items()}
    room.sidecar.call("settings/write", scope="user", set=named)


def _leave(room: Room) -> None:
    """Let the process end as an app does it, and start another."""
    room.sidecar.close_stdin()
    assert room.sidecar.wait() == 0
    room.start()


def test_after_a_kill_the_next_request_tells_once_where_the_work_stands(quiet: Room) -> None:
    _work(quiet)
    assert not _blocks(quiet.preview("Go on"))
    quiet.restart()

    preview = quiet.preview("Go on", includeText=True)
    [shown] = _blocks(preview)
    without = quiet.preview("Go on", context={"exclude": ["snapshot"]})
    sent, request = _ask(quiet, "Go on [[say=On]]")
    [fence] = _told(request)

    assert block(without, "snapshot")["gate"] == "excluded"
    assert (shown["kind"], shown["gate"], shown["label"]) == ("summary", "resumed", LABEL)
    assert shown["tokens"] <= MAX_TOKENS
    assert fence.text in shown["text"]
    for told in (GOAL, "Write zebra.py", "ls /nowhere/at-all", COMMIT):
        assert fence.text.count(told) == 1, told
    assert text_of(messages(request)[-1]).count(LABEL) == 1, "in the tail, with the prompt"
    assert _blocks(quiet.assembled(sent))[0]["gate"] == "resumed"

    sent, request = _ask(quiet, "And on [[say=On]]")
    assert _told(request) == []
    assert sent_text(request).count(f"[{LABEL}: ") == 1, "a line is left where it was"
    assert not _blocks(quiet.assembled(sent))
    assert quiet.refused == []


def test_it_stays_due_until_a_turn_with_it_was_answered(quiet: Room) -> None:
    _work(quiet)
    quiet.restart()
    before = len(quiet.asked)
    sent = quiet.sidecar.say("Go on [[fault=hang_before_headers]]", chatId="c")
    quiet.sidecar.wait_until(lambda: len(quiet.asked) > before, PATIENCE_S, "the request")
    quiet.sidecar.call("turn/cancel", chatId="c", turnId=sent["turnId"], queue="keep")

    told = [len(_told(_ask(quiet, f"Go on {number} [[say=On]]")[1])) for number in range(2)]
    assert (len(_told(quiet.asked[before])), told) == (1, [1, 0])


def test_a_small_chat_is_sent_whole_and_needs_none(quiet: Room) -> None:
    _work(quiet, fill=0)
    quiet.restart()
    assert [one for one in quiet.preview("Go on")["blocks"] if one["id"] == "snapshot"] == []
    _, request = _ask(quiet, "Go on [[say=On]]")
    assert _told(request) == []
    assert GOAL in sent_text(request)


def test_after_a_compaction_it_tells_what_the_summary_does_not(quiet: Room) -> None:
    _work(quiet, fill=2)
    assert quiet.sidecar.call("chat/compact", chatId="c")["compactionId"]
    sent, request = _ask(quiet, "Go on [[say=On]]")
    [fence] = _told(request)
    found, _ = fences("\n".join(map(text_of, messages(request))))
    [summary] = [one.text for one in found if one.label == "summary of the chat so far"]

    assert _blocks(quiet.assembled(sent))[0]["gate"] == "compacted"
    assert (summary.count(GOAL), fence.text.count(GOAL)) == (1, 0), "the goal is there once, not twice"
    assert COMMIT not in summary
    assert fence.text.count(COMMIT) == 1
    _, request = _ask(quiet, "And on [[say=On]]")
    assert _told(request) == []
    assert [one["reason"] for one in _items(quiet)] == ["compaction"], "one was kept before"
    quiet.restart()
    _, request = _ask(quiet, "Once more [[say=On]]")
    assert len(_told(request)) == 1, "a restart tells it again"


def test_a_snapshot_is_sent_along_once_at_a_wish_and_opens_its_files(quiet: Room) -> None:
    _settings(quiet, snapshot_interval=3)
    _work(quiet, fill=0)
    [kept] = _items(quiet)
    turns = quiet.sidecar.call("chat/history", chatId="c")["turns"]
    quiet.sidecar.call("files/clear", chatId="c")
    quiet.write("gone.py", "GONE = 1\n")
    restored = quiet.sidecar.call("snapshots/restore", chatId="c", id=kept["id"])

    assert restored["opened"] == [str(quiet.project / "zebra.py")]
    assert (restored["missing"], restored["snapshot"]) == ([], kept)
    listed = quiet.sidecar.call("files/list", chatId="c")["files"]
    assert [(file["path"], file["openedBy"]) for file in listed] == [(restored["opened"][0], "snapshot")]
    assert quiet.sidecar.call("chat/history", chatId="c")["turns"] == turns, "nothing is rewound"

    quiet.restart()
    for _ in range(2):
        [shown] = _blocks(quiet.preview("Go on", includeText=True))
        assert (shown["gate"], restored["text"] in shown["text"]) == ("restored", True), "also after a kill"
    told = [_told(_ask(quiet, f"Go on {number} [[say=On]]")[1]) for number in range(2)]
    assert [[fence.text for fence in fences_] for fences_ in told] == [[restored["text"]], []]


def test_what_is_under_way_and_what_was_looked_at_are_of_now(quiet: Room) -> None:
    assert quiet.sidecar.call("snapshots/list", chatId="c")["items"] == []
    _work(quiet, fill=0)
    quiet.ask(say_tool("read_file", path="notes.txt"))
    [flow], [looked] = _items(quiet, "workflow"), _items(quiet, "navigation")

    assert (flow["id"], looked["id"]) == ("workflow", "navigation")
    plan = [one["text"] for one in _show(quiet, "workflow")["entries"] if one["kind"] == "plan"]
    assert plan == ["[in progress] Write zebra.py", "[pending] Test it", "[completed] Read the old one"]
    assert [one["path"] for one in _show(quiet, "navigation")["entries"]] == ["notes.txt", "zebra.py"]
    quiet.sidecar.call("files/clear", chatId="c")
    opened = quiet.sidecar.call("snapshots/restore", chatId="c", id="navigation")["opened"]
    assert opened == [str(quiet.project / name) for name in ("zebra.py", "notes.txt")]
    quiet.restart()
    assert _items(quiet, "workflow")[0]["entries"] == flow["entries"], "a kill loses none"
    refused = quiet.sidecar.refused("snapshots/show", chatId="c", id="sn-none")
    assert (refused.code, refused.data["params"]["field"]) == (-32002, "id")


def test_no_more_are_kept_than_the_settings_say(quiet: Room) -> None:
    _settings(quiet, snapshot_interval=1, max_snapshots=3)
    turns = [str(quiet.ask(f"Step {number} [[say=Done]]")["turnId"]) for number in range(7)]
    kept = _items(quiet)
    assert [(one["turnId"], one["turns"]) for one in kept] == [
        (turn, number) for number, turn in list(enumerate(turns, 1))[:3:-1]
    ]
    assert {one["reason"] for one in kept} == {"interval"}
    _settings(quiet, max_snapshots=0)
    quiet.restart()
    quiet.ask(say_tool("read_file", path="notes.txt"))
    _leave(quiet)
    assert [one["id"] for one in _items(quiet)] == [one["id"] for one in kept], "0 takes no more"


def test_one_is_kept_when_the_chat_is_closed_and_when_the_process_leaves(quiet: Room) -> None:
    quiet.ask(say_tool("read_file", path="notes.txt"))
    _leave(quiet)
    quiet.ask(say_tool("write_file", path="a.py", content="A = 1\n"))
    quiet.sidecar.call("chat/close", chatId="c")
    _leave(quiet)
    _leave(quiet)
    assert [one["reason"] for one in _items(quiet)] == ["close", "exit"], "and none when nothing has changed"


def test_a_branch_that_left_the_view_is_not_told(quiet: Room) -> None:
    _settings(quiet, snapshot_interval=2)
    quiet.ask("Build the zebra [[say=Yes]]")
    first = quiet.ask("Slowly [[say=Yes]]")
    canary = quiet.ask(say_tool("write_file", path="canary.py", content="1\n"))
    quiet.ask(say_tool("run_command", command="git commit --allow-empty -m canary"))
    newest, older = _items(quiet)
    quiet.sidecar.call("snapshots/restore", chatId="c", id=newest["id"])
    quiet.sidecar.call("chat/rewind", chatId="c", before={"turnId": canary["turnId"]})

    assert [one.get("hidden", False) for one in _items(quiet)] == [True, False]
    assert older["turnId"] == first["turnId"]
    assert "canary" not in json.dumps([_show(quiet, id) for id in ("workflow", older["id"])])
    assert not _blocks(quiet.preview("Go on")), "what waited does not go along either"
    refused = quiet.sidecar.refused("snapshots/restore", chatId="c", id=newest["id"])
    assert (refused.data["name"], "chat/rewind" in refused.data["hint"]) == ("precondition_failed", True)
    quiet.sidecar.call("chat/rewind", chatId="c", to={"turnId": newest["turnId"]})
    assert _blocks(quiet.preview("Go on"))[0]["label"] == f"snapshot {newest['id']}"
    quiet.sidecar.call("chat/fork", chatId="c", newChatId="d", at={"turnId": first["turnId"]})
    of_fork = [_show(quiet, one["id"], "d") for kind in KINDS for one in _items(quiet, kind, "d")]
    assert ("canary" in json.dumps(of_fork), len(of_fork)) == (False, 2), "a fork has its own"


def test_nothing_of_another_chat_is_told_and_a_deleted_one_leaves_nothing(quiet: Room) -> None:
    """The two chats' names slug alike."""
    _settings(quiet, snapshot_interval=1)
    for number, chat in enumerate(("a/b", "a b")):
        quiet.open(chat)
        quiet.ask(f"Find the canary{number} {say_tool('read_file', path='notes.txt')}", chat=chat)
    for number, chat in enumerate(("a/b", "a b")):
        shown = [_show(quiet, one["id"], chat) for kind in KINDS for one in _items(quiet, kind, chat)]
        assert (f"canary{number}" in json.dumps(shown), f"canary{1 - number}" in json.dumps(shown)) == (
            True,
            False,
        )
    [other] = _items(quiet, chat="a/b")
    assert quiet.sidecar.refused("snapshots/restore", chatId="a b", id=other["id"]).code == -32002
    quiet.sidecar.call("chat/delete", chatId="a/b")
    quiet.open("a/b")
    assert quiet.sidecar.call("snapshots/list", chatId="a/b")["items"] == []
    assert quiet.sidecar.refused("snapshots/show", chatId="a/b", id=other["id"]).code == -32002


def test_users_of_any_language_are_told_of_alike(quiet: Room) -> None:
    goals = [
        "ゼブラ形式を移植してください。",
        "انقل محلل زيبرا إلى بايثون.",
        "Portiere den Zebra-Parser 移植して!",
    ]
    for goal in goals:
        quiet.open(goal)
        _work(quiet, goal, chat=goal)
    quiet.restart()
    for goal in goals:
        [fence] = _told(_ask(quiet, "Weiter, 続けて [[say=On]]", chat=goal)[1])
        for told in (goal, "Write zebra.py", "ls /nowhere/at-all", COMMIT):
            assert fence.text.count(told) == 1, told
        assert [other for other in goals if other != goal and other in fence.text] == []


def test_commands_list_show_and_restore(quiet: Room) -> None:
    _work(quiet, fill=0)
    session = quiet.session

    def command(text: str) -> Json:
        seq = quiet.sidecar.say(text, chatId="c")["seq"]
        data: Json = quiet.sidecar.wait_event(session, lambda event: event["seq"] == seq)["data"]
        return data

    assert [one["id"] for one in command("/snapshots")["data"]["items"]] == ["workflow", "navigation"]
    assert "- goal: Port the Zebrawood parser" in command("/snapshots show workflow")["markdown"]
    assert command("/snapshots restore workflow")["data"]["opened"] == []
    assert _blocks(quiet.preview("Go on"))[0]["label"] == "snapshot workflow"
    refused = quiet.sidecar.refused("prompt/send", chatId="c", promptId="bad", text="/snapshots drop")
    assert "/snapshots restore ID" in refused.data["params"]["expected"]
