"""The tree of a chat: rewinding, coming back, forking, checkpoints; files, open files and ledger follow."""

from __future__ import annotations

from tests.blackbox.work.test_commands import command
from tests.blackbox.work.workbench import Json, Workbench, call
from tests.support.sidecar import Sidecar

READ = call("read_file", path="notes.txt")
SECOND = call("edit_file", path="notes.txt", old_string="second", new_string="2nd")
NEW = call("write_file", path="new.md", content="new\n")


def three_turns(bench: Workbench) -> tuple[Sidecar, list[str]]:
    sidecar = bench.start([READ, SECOND, "one"], [NEW, "two"], ["three"], ["four"])
    turns = [sidecar.run(text, chatId="c")["turnId"] for text in ("a", "b", "c")]
    return sidecar, turns


def shown(sidecar: Sidecar, chat: str = "c") -> list[str]:
    return [turn["id"] for turn in sidecar.call("chat/history", chatId=chat)["turns"]]


def patches(sidecar: Sidecar, chat: str = "c") -> list[str]:
    return [item["filePath"] for item in sidecar.call("patches/list", chatId=chat)["items"]]


def files(sidecar: Sidecar, chat: str = "c") -> list[str]:
    return [file["path"].rpartition("/")[2] for file in sidecar.call("files/list", chatId=chat)["files"]]


def test_a_rewind_hides_turns_with_their_patches_and_files(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    rewound = sidecar.call("chat/rewind", chatId="c", before={"turnId": turns[1]})

    assert (rewound["head"], rewound["hidden"], rewound["fileChanges"]) == (turns[0], turns[1:], [])
    assert (shown(sidecar), patches(sidecar), files(sidecar)) == (turns[:1], ["notes.txt"], ["notes.txt"])
    assert bench.read("new.md") == "new\n"


def test_a_rewind_can_take_the_files_along_and_back(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    would = sidecar.call("chat/rewind", chatId="c", before={"turnId": turns[0]}, files="restore", dryRun=True)
    assert {change["path"]: change["status"] for change in would["fileChanges"]} == {
        "new.md": "would_restore",
        "notes.txt": "would_restore",
    }
    assert shown(sidecar) == turns
    sidecar.call("chat/rewind", chatId="c", before={"turnId": turns[0]}, files="restore")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"
    assert not (bench.project / "new.md").exists()
    assert (shown(sidecar), patches(sidecar), files(sidecar)) == ([], [], [])

    back = sidecar.call("chat/rewind", chatId="c", to={"turnId": turns[1]}, files="restore")
    assert (back["head"], back["shown"]) == (turns[1], turns[:2])
    assert (bench.read("notes.txt"), bench.read("new.md")) == ("first\n2nd\nthird\n", "new\n")
    assert (shown(sidecar), patches(sidecar)) == (turns[:2], ["new.md", "notes.txt"])
    assert files(sidecar) == ["new.md", "notes.txt"]


def test_a_rewind_over_foreign_edits_changes_nothing(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    (bench.project / "notes.txt").write_text("mine\n")
    refusal = sidecar.refused("chat/rewind", chatId="c", before={"turnId": turns[0]}, files="restore")

    assert refusal.code == -32010
    assert [change["path"] for change in refusal.detail("fileChanges")] == ["notes.txt"]
    assert (bench.read("notes.txt"), bench.read("new.md")) == ("mine\n", "new\n")
    assert shown(sidecar) == turns


def test_a_chat_goes_on_from_where_it_was_rewound_to(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    sidecar.call("chat/rewind", chatId="c", before={"turnId": turns[2]})
    new = sidecar.run("d", chatId="c")["turnId"]
    assert shown(sidecar) == [*turns[:2], new]
    sidecar.call("chat/rewind", chatId="c", to={"turnId": turns[2]})
    assert shown(sidecar) == turns
    sidecar.kill()
    again = bench.start(["x"])
    again.call("chat/open", chatId="c")
    assert shown(again) == turns


def test_a_fork_is_a_chat_of_its_own_with_files_and_ledger(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    forked = sidecar.call("chat/fork", chatId="c", newChatId="fork", at={"turnId": turns[1]})

    assert (forked["status"], forked["chatId"]) == ("created", "fork")
    assert [turn["id"] for turn in forked["turns"]] == turns[:2]
    original = sidecar.call("chat/history", chatId="c")["turns"]
    assert [_texts(turn) for turn in forked["turns"]] == [_texts(turn) for turn in original[:2]]
    assert (patches(sidecar, "fork"), files(sidecar, "fork")) == (
        ["new.md", "notes.txt"],
        ["new.md", "notes.txt"],
    )
    events = sidecar.journal(forked["sessionId"])
    assert (events[0]["seq"], forked["lastSeq"]) == (1, events[-1]["seq"])
    assert sidecar.run("d", chatId="fork")["data"]["reason"] == "end_turn"
    assert len(shown(sidecar)) == 3
    assert sidecar.refused("chat/fork", chatId="c", newChatId="fork").code == -32003


def test_a_fork_stays_when_its_source_is_deleted(bench: Workbench) -> None:
    sidecar, _ = three_turns(bench)
    sidecar.call("chat/fork", chatId="c", newChatId="fork")
    sidecar.call("chat/delete", chatId="c")
    sidecar.call("patches/revert", chatId="fork", path="notes.txt")
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"


def test_a_checkpoint_is_a_place_to_come_back_to(bench: Workbench) -> None:
    sidecar = bench.start([READ, SECOND, "one"], [NEW, "two"])
    first = sidecar.run("a", chatId="c")["turnId"]
    sidecar.say("/session save before new", chatId="c")
    sidecar.run("b", chatId="c")
    loaded = sidecar.say("/session load before new --files", chatId="c")

    assert loaded["disposition"] == "command"
    assert (shown(sidecar), files(sidecar), patches(sidecar)) == ([first], ["notes.txt"], ["notes.txt"])
    assert not (bench.project / "new.md").exists()
    assert bench.read("notes.txt") == "first\n2nd\nthird\n"


def test_files_that_a_move_has_kept_are_restored_by_the_same_move(bench: Workbench) -> None:
    sidecar = bench.start([READ, "one"], [SECOND, NEW, "two"], ["three"])
    sidecar.run("a", chatId="c")
    sidecar.say("/session save start", chatId="c")
    sidecar.run("b", chatId="c")
    sidecar.say("/session load start", chatId="c")
    assert (bench.read("notes.txt"), bench.read("new.md")) == ("first\n2nd\nthird\n", "new\n")
    sidecar.run("c", chatId="c")
    sidecar.say("/session load start", chatId="c")

    assert command(sidecar, "/session load start --files")["data"]["files"] == [
        {"path": "new.md", "kind": "delete", "status": "restored", "reason": None, "reasonCode": None},
        {"path": "notes.txt", "kind": "modify", "status": "restored", "reason": None, "reasonCode": None},
    ]
    assert bench.read("notes.txt") == "first\nsecond\nthird\n"
    assert not (bench.project / "new.md").exists()
    (bench.project / "notes.txt").write_text("mine\n")
    answer = command(sidecar, "/session load start --files")
    assert bench.read("notes.txt") == "mine\n", "what was changed since stays"
    assert answer["data"]["files"] == [
        {
            "path": "notes.txt",
            "kind": "modify",
            "status": "unchanged",
            "reason": "The file was edited from outside since",
            "reasonCode": "drifted",
        }
    ]
    assert "notes.txt | unchanged: The file was edited from outside since" in answer["markdown"]


def test_wrong_turns_are_refused_by_name(bench: Workbench) -> None:
    sidecar, turns = three_turns(bench)
    assert sidecar.refused("chat/rewind", chatId="c", before={"turnId": "t-none"}).code == -32002
    assert sidecar.refused("chat/rewind", chatId="c").code == -32602
    both = {"before": {"turnId": turns[0]}, "to": {"turnId": turns[0]}}
    assert sidecar.refused("chat/rewind", chatId="c", **both).code == -32602
    assert sidecar.refused("chat/fork", chatId="c", newChatId="x", at={"turnId": "t-none"}).code == -32002


def _texts(turn: Json) -> list[tuple[str, str | None]]:
    return [(item["type"], item.get("text")) for item in turn["items"]]
