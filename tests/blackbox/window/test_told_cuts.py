"""What is cut or left out before the assembly is in the manifest, too: `truncated`, and named in label or text."""

from __future__ import annotations

import pytest

from tests.blackbox.window.room import Room, block

NEUTRAL = "Tell me something nice about the weather. [[say=Sunny]]"


def commit(room: Room) -> None:
    room.bench.git("add", "-A")
    room.bench.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "more")


def test_a_diff_that_git_was_not_read_to_the_end_of_is_truncated(large: Room) -> None:
    large.write("a.min.js", "old\n")
    large.write("z.txt", "old z\n")
    commit(large)
    large.write("a.min.js", "var a = 1; " * 150_000)
    large.write("z.txt", "new z\n")

    found = block(large.preview("Show me the git diff", includeText=True), "gitDiff")
    assert found["included"] == "truncated"
    assert "the rest is left out" in found["text"]
    assert "+new z" in found["text"]
    large.write("a.min.js", "var a = 1;\n")
    assert block(large.preview("Show me the git diff"), "gitDiff")["included"] == "full"


def test_new_files_that_are_not_listed_are_counted(large: Room) -> None:
    for number in range(53):
        large.write(f"new{number:02}.txt", "x\n")

    found = block(large.preview("Show me the git diff", includeText=True), "gitDiff")
    assert found["included"] == "truncated"
    assert "untracked: new49.txt\n… 3 more untracked files" in found["text"]


def test_the_list_of_changed_files_goes_before_their_changes(room: Room) -> None:
    names = [f"src/module_{number:03}.py" for number in range(400)]
    for name in names:
        room.write(name, "old\n")
    commit(room)
    for name in names:
        room.write(name, "new\n")

    text = block(room.preview("Show me the git diff", includeText=True), "gitDiff")["text"]
    listed = sum(f" {name} " in text for name in names)
    assert listed > 150
    assert f"… {401 - listed} more lines" in text, "the last line of git's list is the sum"


@pytest.mark.parametrize("trusted", [True, False])
def test_rules_that_are_cut_left_out_or_broken_are_named(large: Room, trusted: bool) -> None:
    large.sidecar.call("project/trust", path=str(large.project), trusted=trusted)
    large.write("CLAUDE.md", "Short rule.\n")
    whole = block(large.preview(NEUTRAL), "rules")
    assert (whole["included"], whole["label"]) == ("full", "rules: CLAUDE.md")
    for name, text in {
        "AGENTS.md": "Be careful, please.\n" * 3000,
        ".sidecar/rules/big.md": "Too large to be read. " * 4000,
        ".sidecar/rules/wrong.json": '{"instruktion": "x"}',
    }.items():
        large.write(name, text)
    if trusted:
        large.sidecar.call("project/trust", path=str(large.project), trusted=True)

    found = block(large.preview(NEUTRAL), "rules")
    assert (found["included"], found["gate"]) == ("truncated", "always")
    assert found["label"] == (
        "rules: AGENTS.md, CLAUDE.md; cut: AGENTS.md; broken: .sidecar/rules/big.md, .sidecar/rules/wrong.json"
    )


def test_rules_that_are_all_broken_are_a_dropped_block(room: Room) -> None:
    room.write(".sidecar/rules/wrong.json", '{"instruktion": "x"}')
    found = block(room.preview(NEUTRAL), "rules")
    assert (found["included"], found["gate"]) == ("dropped", "unavailable")
    assert found["label"] == "rules broken: .sidecar/rules/wrong.json"


def test_standing_instructions_that_are_left_out_make_the_block_truncated(large: Room) -> None:
    large.ask("From now on always answer in style 0. [[say=Yes]]")
    assert block(large.preview(NEUTRAL), "standing")["included"] == "full"
    for number in range(1, 12):
        large.ask(f"From now on always answer in style {number}, {'very ' * 60}nicely. [[say=Yes]]")
    found = block(large.preview(NEUTRAL, includeText=True), "standing")
    assert found["included"] == "truncated"
    assert "style 11" in found["text"]
    assert "style 0" not in found["text"]
