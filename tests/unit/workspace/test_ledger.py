"""What a patch says, what is kept of it, and how it is found."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.model.failures import Refused
from sidecar.workspace import diff, ledger
from tests.unit.workspace.environment import Desk, digest


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
    environment = Desk({} if before is None else {"f": before})
    patch = environment.edit("f", after)

    assert (patch.kind, patch.summary, (patch.added, patch.removed)) == (kind, summary, counts)
    assert patch.summary == diff.summary(before, after)
    assert (patch.before_hash, patch.after_hash) == (digest(before), digest(after))
    assert patch.unified_diff == diff.unified_diff("f", before, after).text
    assert (patch.status, patch.truncated, patch.binary) == ("applied", False, False)


def test_a_binary_file_has_a_summary_and_no_diff() -> None:
    change = ledger.make_change("f", b"\0\1", b"\0\2", "old", "new")
    patch = ledger.make_patch(
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
    change = ledger.make_change("f", None, b"line\n" * 1000, None, "new", max_diff_bytes=500)

    assert change.truncated
    assert len((change.unified_diff or "").encode()) <= 500
    assert change.added == 1000


def test_statuses_say_what_stands_and_what_changed_from_outside() -> None:
    environment = Desk({"f": b"1", "g": b"1", "h": b"1"})
    environment.edit("f", b"2")
    environment.edit("f", b"3")
    environment.edit("g", b"2")
    environment.edit("h", None)
    assert environment.statuses() == ["superseded", "applied", "applied", "applied"]

    environment.put("g", b"by hand")
    environment.put("h", b"there again")
    environment.revert(environment.patches[1])
    assert environment.statuses() == ["applied", "reverted", "drifted", "drifted"]

    again = ledger.with_statuses(environment.patches, environment.hash_on_disk)
    assert ledger.with_statuses(again, environment.hash_on_disk) == again
    assert ledger.plan_revert(again, again, environment.hash_on_disk) == ledger.plan_revert(
        environment.patches, environment.patches, environment.hash_on_disk
    )


def test_patches_are_found_by_number_id_path_and_turn() -> None:
    environment = Desk()
    one, two, three = (
        environment.edit("a", b"1", "t1"),
        environment.edit("b", b"1", "t1"),
        environment.edit("a", b"2", "t2"),
    )

    assert ledger.select_patches(environment.patches) == [one, two, three]
    assert ledger.select_patches(environment.patches, number=1) == [three]
    assert ledger.select_patches(environment.patches, number=3) == [one]
    assert ledger.select_patches(environment.patches, id="p2") == [two]
    assert ledger.select_patches(environment.patches, path="a") == [one, three]
    assert ledger.select_patches(environment.patches, turn_id="t1") == [one, two]
    assert ledger.select_patches(environment.patches, path="a", turn_id="t1") == [one]


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
    environment = Desk()
    environment.edit("src/main.py", b"1", "turn-1")
    environment.edit("other.txt", b"1", "turn-1")

    with pytest.raises(Refused) as refused:
        ledger.select_patches(environment.patches, **asked)
    assert (refused.value.name, refused.value.message) == ("not_found", words)


def test_a_chat_without_patches_says_so() -> None:
    with pytest.raises(Refused, match="it has none"):
        ledger.select_patches([], number=1)
    with pytest.raises(Refused, match="it has none"):
        ledger.select_patches([], id="p1")
