"""The gates in a real project: failures after edits from outside, switched-off pins, and blocks named by the prompt."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.blackbox.window.room import Json, Room, block
from tests.support.sidecar import Refusal

pytestmark = pytest.mark.slow

ALPHA = "def alpha(value):\n    return value + 1\n"
NEUTRAL = "Tell me something nice about the weather. [[say=Sunny]]"
FAILS = "why do the tests fail now? [[say=Because]]"


def git(room: Room, *command: str) -> None:
    name = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *name, *command], cwd=room.project, check=True, capture_output=True)


def commit(room: Room) -> None:
    git(room, "add", "-A")
    git(room, "commit", "-q", "--allow-empty", "-m", "State")


def git_gate(room: Room, text: str) -> str | None:
    rows = [row for row in room.preview(text)["blocks"] if row["id"] == "gitDiff"]
    return rows[0]["gate"] if rows else None


def _open_file(room: Room) -> None:
    room.show("src/alpha.py", ALPHA)
    commit(room)
    room.ask("Explain src/alpha.py [[say=It adds]]")
    room.write("src/alpha.py", ALPHA.replace("1", "2"))


def _tracked_file(room: Room) -> None:
    room.write("src/beta.py", ALPHA)
    commit(room)
    room.write("src/beta.py", ALPHA.replace("1", "2"))


def _staged_file(room: Room) -> None:
    _tracked_file(room)
    git(room, "add", "-A")


def _file_of_the_ledger(room: Room) -> None:
    commit(room)
    room.edit("src/alpha.py", ALPHA)
    room.write("src/alpha.py", ALPHA.replace("1", "2"))


@pytest.mark.parametrize("edited", [_open_file, _tracked_file, _staged_file, _file_of_the_ledger])
def test_a_failure_told_in_words_after_an_edit_from_outside_brings_gits_diff(
    room: Room, edited: Callable[[Room], None]
) -> None:
    edited(room)

    assert git_gate(room, FAILS) == "failure-after-drift"
    assert git_gate(room, "les tests ne passent plus [[say=Non]]") == "failure-after-drift"
    assert git_gate(room, NEUTRAL) is None
    assert git_gate(room, "what happens if the build fails?") is None


def test_a_failure_without_an_edit_from_outside_brings_no_diff(room: Room) -> None:
    commit(room)
    assert git_gate(room, FAILS) is None
    room.edit("src/alpha.py", ALPHA)
    git(room, "add", "-A")
    assert git_gate(room, FAILS) is None, "only a tool has changed it"


def test_a_pinned_file_stays_out_when_open_files_are_switched_off(room: Room) -> None:
    room.show("src/alpha.py", ALPHA, pin=True)
    for manifest in (
        room.preview("Explain src/alpha.py", context={"openFiles": "never"}),
        room.assembled(room.ask("Explain src/alpha.py [[say=No]]", context={"openFiles": "never"})),
    ):
        row = block(manifest, "file:src/alpha.py")
        assert (row["gate"], row["included"]) == ("never", "dropped")
    room.sidecar.call("chat/configure", chatId="c", set={"gates": {"openFiles": "never"}})
    assert block(room.preview(NEUTRAL), "file:src/alpha.py")["included"] == "dropped"
    chosen = room.preview(NEUTRAL, context={"include": ["src/alpha.py"]})
    assert block(chosen, "file:src/alpha.py")["gate"] == "included"


@pytest.mark.parametrize("name", ["gitDiff", "git diff"])
def test_the_git_diff_is_sent_when_it_is_included(room: Room, name: str) -> None:
    _tracked_file(room)
    row = block(room.preview(NEUTRAL, context={"include": [name]}), "gitDiff")
    assert (row["gate"], row["included"]) == ("included", "full")
    room.sidecar.call("chat/configure", chatId="c", set={"gates": {"gitDiff": "never"}})
    assert block(room.preview(NEUTRAL, context={"include": [name]}), "gitDiff")["gate"] == "included"


def test_kinds_of_blocks_can_be_included_and_excluded(room: Room) -> None:
    room.edit("src/beta.py", ALPHA)
    room.show("src/alpha.py", ALPHA)
    opened = room.preview(NEUTRAL, context={"include": ["openFiles", "patches"]})
    assert block(opened, "file:src/alpha.py")["gate"] == "included"
    assert [row["included"] for row in opened["blocks"] if row["id"].startswith("patch:")] == ["full"]
    closed = room.preview("Explain src/alpha.py", context={"exclude": ["openFiles", "patches"]})
    rows = [row for row in closed["blocks"] if row["kind"] in ("openFiles", "patches")]
    assert {row["included"] for row in rows} == {"dropped"}


@pytest.mark.parametrize("member", ["include", "exclude"])
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("gitDif", "gitDiff"),
        ("openfiles", "openFiles"),
        ("git_diff", "gitDiff"),
        ("src/alhpa.py", "src/alpha.py"),
        ("file:src/alpa.py", "file:src/alpha.py"),
        ("patch:nope", "patches"),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    room: Room, member: str, name: str, nearest: str | None
) -> None:
    room.show("src/alpha.py", ALPHA)
    for method, more in (("chat/context", {}), ("prompt/send", {"promptId": "bad"})):
        with pytest.raises(Refusal) as refused:
            room.sidecar.call(method, chatId="c", text=NEUTRAL, context={member: ["files", name]}, **more)
        assert refused.value.code == -32602
        assert refused.value.detail("field") == f"context.{member}[1]"
        assert refused.value.data["params"].get("nearest") == nearest
        assert len(str(refused.value)) < 2_000
    sent = room.sidecar.call("prompt/send", chatId="c", text=NEUTRAL, promptId="bad")
    assert sent["disposition"] == "started", "nothing of it was accepted"


def test_a_block_that_is_always_sent_cannot_be_excluded(room: Room) -> None:
    with pytest.raises(Refusal, match="part of every request"):
        room.preview(NEUTRAL, context={"exclude": ["rules"]})
    assert room.preview(NEUTRAL, context={"include": ["rules"]})


def test_a_chats_exclusions_may_name_files_that_do_not_exist_yet(room: Room) -> None:
    room.sidecar.call("chat/configure", chatId="c", set={"exclude": ["later.py", "gitDiff"]})
    with pytest.raises(Refusal) as refused:
        room.sidecar.call("chat/configure", chatId="c", set={"exclude": ["gitDif"]})
    assert refused.value.detail("field") == "set.exclude[0]"
    assert refused.value.detail("nearest") == "gitDiff"


def test_a_repeated_prompt_is_a_duplicate_even_when_its_file_is_gone(room: Room, tmp_path: Path) -> None:
    path = Path(room.write("gone.txt", "text\n"))
    named: Json = {"promptId": "p", "text": NEUTRAL, "context": {"exclude": ["gone.txt"]}}
    room.sidecar.call("prompt/send", chatId="c", **named)
    path.unlink()
    assert room.sidecar.call("prompt/send", chatId="c", **named)["disposition"] == "duplicate"


def test_what_a_prompt_says_of_the_last_edit_brings_its_diff(room: Room) -> None:
    room.edit("src/alpha.py", ALPHA)
    for text in ("keep going", "refactor the function to use a generator", "why did you alter the loop?"):
        rows = room.preview(f"{text} [[say=Yes]]")["blocks"]
        assert [row["included"] for row in rows if row["id"].startswith("patch:")] == ["full"], text
    rows = room.preview("the change in the till")["blocks"]
    assert [row for row in rows if row["id"].startswith("patch:") and row["included"] != "dropped"] == []


def test_a_plain_name_of_an_open_file_opens_it(room: Room) -> None:
    room.show("src/lexer.py", "def tokenize(text):\n    return text.split()\n")
    assert block(room.preview("what does tokenize do?"), "file:src/lexer.py")["gate"] == "code-intent"
    refused = block(room.preview("do not use the open files"), "file:src/lexer.py")
    assert refused["included"] == "dropped"
