"""What a patch says, what is kept of it, and how it is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.failures import Refused
from sidecar.model.files import Patch
from sidecar.workspace import diff, ledger
from tests.workspace.desk import Desk, digest


@pytest.mark.parametrize(
    ("before", "after", "kind", "summary", "counts"),
    [
        (None, b"a\nb\n", "create", "New file: 2 lines", (2, 0)),
        (None, b"", "create", "New file: 0 lines", (0, 0)),
        (b"a\nb\nc\n", b"a\nB\nc\nd\n", "modify", "-1, +2 lines", (2, 1)),
        (b"a\n", None, "delete", "Deleted: 1 line", (0, 1)),
        (b"a\r\n", b"a\n", "modify", "-1, +1 lines", (1, 1)),
    ],
)
def test_a_patch_tells_the_change_in_words_hashes_and_lines(
    before: bytes | None, after: bytes | None, kind: str, summary: str, counts: tuple[int, int]
) -> None:
    desk = Desk({} if before is None else {"f": before})
    patch = desk.edit("f", after)

    assert (patch.kind, patch.summary, (patch.added, patch.removed)) == (kind, summary, counts)
    assert patch.summary == diff.summary(before, after)
    assert (patch.before_hash, patch.after_hash) == (digest(before), digest(after))
    assert patch.unified_diff == diff.unified("f", before, after).text
    assert (patch.status, patch.truncated, patch.binary) == ("applied", False, False)


def test_a_binary_file_has_a_summary_and_no_diff() -> None:
    change = ledger.change_of("f", b"\0\1", b"\0\2", "old", "new")
    patch = ledger.patch_of(
        change,
        id="p",
        turn_id="t",
        item_id="i",
        tool_name="x",
        ts=1,
        mode=None,
        summary="Binary: 2 -> 2 bytes",
    )

    assert (change.binary, change.unified_diff, change.truncated) == (True, None, False)
    assert (patch.summary, patch.item_id, patch.old_ref, patch.new_ref) == (
        "Binary: 2 -> 2 bytes",
        "i",
        "old",
        "new",
    )


def test_a_diff_over_the_cap_is_cut_and_flagged() -> None:
    change = ledger.change_of("f", None, b"line\n" * 1000, None, "new", max_diff_bytes=500)

    assert change.truncated
    assert len((change.unified_diff or "").encode()) <= 500
    assert change.added == 1000


def diffs(patches: Sequence[Patch]) -> list[tuple[str, int | None, bool]]:
    return [
        (patch.id, None if patch.unified_diff is None else len(patch.unified_diff), patch.truncated)
        for patch in patches
    ]


def with_diffs(*sizes: int | None) -> list[Patch]:
    desk = Desk()
    for number in range(len(sizes)):
        desk.edit(f"f{number}", b"x")
    return [
        msgspec.structs.replace(patch, unified_diff=None if size is None else "x" * size)
        for patch, size in zip(desk.patches, sizes, strict=True)
    ]


def test_the_oldest_entries_are_left_out() -> None:
    patches = with_diffs(*[1] * 25)

    assert ledger.kept(patches) == patches[5:]
    assert ledger.kept(patches, max_entries=2) == patches[23:]
    assert ledger.kept([]) == []


def test_the_oldest_diffs_are_stripped_first_and_their_summaries_stay() -> None:
    patches = with_diffs(10, None, 60, 30)
    kept = ledger.kept(patches, max_bytes=95)

    assert diffs(kept) == [("p1", None, True), ("p2", None, False), ("p3", 60, False), ("p4", 30, False)]
    assert [patch.summary for patch in kept] == [patch.summary for patch in patches]
    assert diffs(ledger.kept(patches, max_bytes=100)) == diffs(patches)


def test_one_diff_over_the_cap_is_cut_and_flagged() -> None:
    desk = Desk({"f": b"a\n"})
    desk.edit("f", b"line\n" * 1000)
    (kept,) = ledger.kept(desk.patches, max_bytes=400)

    assert kept.truncated
    assert 0 < len((kept.unified_diff or "").encode()) <= 400


@given(st.lists(st.none() | st.integers(0, 300), max_size=30), st.integers(0, 25), st.integers(0, 900))
def test_what_is_kept_fits_and_is_the_newest(sizes: list[int | None], entries: int, room: int) -> None:
    patches = with_diffs(*sizes)
    kept = ledger.kept(patches, entries, room)
    texts = [patch.unified_diff for patch in kept if patch.unified_diff]

    assert [patch.id for patch in kept] == [patch.id for patch in patches][max(len(patches) - entries, 0) :]
    assert sum(len(text.encode()) for text in texts) <= room
    newest = [patch for patch in kept if patch.unified_diff is not None or patch.truncated]
    stripped = [patch.unified_diff is None for patch in newest]
    assert stripped == sorted(stripped, reverse=True), "a newer diff was stripped before an older one"


def test_statuses_say_what_stands_and_what_changed_from_outside() -> None:
    desk = Desk({"f": b"1", "g": b"1", "h": b"1"})
    desk.edit("f", b"2")
    desk.edit("f", b"3")
    desk.edit("g", b"2")
    desk.edit("h", None)
    assert desk.statuses() == ["superseded", "applied", "applied", "applied"]

    desk.put("g", b"by hand")
    desk.put("h", b"there again")
    desk.revert(desk.patches[1])
    assert desk.statuses() == ["applied", "reverted", "drifted", "drifted"]

    again = ledger.with_statuses(desk.patches, desk.hash_on_disk)
    assert ledger.with_statuses(again, desk.hash_on_disk) == again
    assert ledger.plan_revert(again, again, desk.hash_on_disk) == ledger.plan_revert(
        desk.patches, desk.patches, desk.hash_on_disk
    )


def test_patches_are_found_by_number_id_path_and_turn() -> None:
    desk = Desk()
    one, two, three = desk.edit("a", b"1", "t1"), desk.edit("b", b"1", "t1"), desk.edit("a", b"2", "t2")

    assert ledger.select(desk.patches) == [one, two, three]
    assert ledger.select(desk.patches, number=1) == [three]
    assert ledger.select(desk.patches, number=3) == [one]
    assert ledger.select(desk.patches, id="p2") == [two]
    assert ledger.select(desk.patches, path="a") == [one, three]
    assert ledger.select(desk.patches, turn_id="t1") == [one, two]
    assert ledger.select(desk.patches, path="a", turn_id="t1") == [one]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"number": 3}, "This chat has no patch 3; it has 2, and 1 is the newest"),
        ({"number": 0}, "This chat has no patch 0; it has 2, and 1 is the newest"),
        ({"id": "p22"}, "This chat has no patch p22; did you mean p2?"),
        ({"path": "main.py"}, "This chat has no patch of main.py; did you mean src/main.py?"),
        ({"path": "zzz"}, "This chat has no patch of zzz; the newest is other.txt"),
        ({"turn_id": "u"}, "This chat has no patch of the turn u; the newest is turn-1"),
    ],
)
def test_an_unknown_patch_is_refused_with_the_nearest(asked: dict[str, Any], words: str) -> None:
    desk = Desk()
    desk.edit("src/main.py", b"1", "turn-1")
    desk.edit("other.txt", b"1", "turn-1")

    with pytest.raises(Refused) as refused:
        ledger.select(desk.patches, **asked)
    assert (refused.value.name, refused.value.message) == ("not_found", words)


def test_a_chat_without_patches_says_so() -> None:
    with pytest.raises(Refused, match="it has none"):
        ledger.select([], number=1)
    with pytest.raises(Refused, match="it has none"):
        ledger.select([], id="p1")
