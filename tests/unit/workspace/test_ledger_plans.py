"""Plans against a plain dict of files: what is undone, made again, and follows to another branch of the chat."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.files import Patch
from sidecar.workspace import ledger
from sidecar.workspace.ledger import Conflict, Restore, RestorePlan
from tests.unit.workspace.environment import EDITS, PATHS, TREES, Chat, Desk, Files, digest, edited


def test_a_revert_names_the_bytes_before_and_the_mode_of_a_file_that_is_gone() -> None:
    environment = Desk({"run.sh": b"1"})
    environment.edit("run.sh", b"2")
    environment.edit("run.sh", None, mode=0o755)
    plan = ledger.plan_revert(environment.patches, environment.patches, environment.hash_on_disk)

    assert plan == RestorePlan(
        (Restore("run.sh", None, digest(b"1"), digest(b"1"), 0o755, ("p1", "p2")),), ()
    )


def test_a_revert_of_a_created_file_deletes_it() -> None:
    environment = Desk()
    environment.edit("new", b"1")

    assert environment.revert(*environment.patches) == ()
    assert environment.files == {}
    assert (
        ledger.plan_revert(environment.patches, environment.patches, environment.hash_on_disk)
        == RestorePlan()
    ), "reverted twice"


def test_an_older_patch_is_not_taken_out_from_under_a_later_one() -> None:
    environment = Desk({"f": b"1"})
    one, two = environment.edit("f", b"2"), environment.edit("f", b"3")

    (conflict,) = environment.revert(one)
    assert (conflict.path, conflict.reason) == ("f", "later_patch")
    assert "It was changed again by patch p2 (edit_file: -1, +1 lines)" in conflict.words
    assert environment.files == {"f": b"3"}
    assert environment.revert(two) == environment.revert(one) == ()
    assert environment.files == {"f": b"1"}


@pytest.mark.parametrize(
    ("made", "found", "words"),
    [
        (b"2", b"by hand", "The file was edited from outside since"),
        (b"2", None, "The file was deleted from outside since"),
        (None, b"by hand", "There is a file now that the chat did not create"),
    ],
)
def test_a_file_that_changed_since_is_a_conflict_and_stays(
    made: bytes | None, found: bytes | None, words: str
) -> None:
    environment = Desk({"f": b"1", "g": b"1"})
    environment.edit("f", made)
    environment.edit("g", b"2")
    environment.put("f", found)

    assert environment.revert(*environment.patches) == (Conflict("f", "drifted", words),)
    assert environment.files.get("f") == found
    assert environment.files["g"] == b"1"


def test_an_edit_between_two_patches_is_not_undone_with_them() -> None:
    environment = Desk({"f": b"1"})
    one = environment.edit("f", b"2")
    environment.put("f", b"2 and mine")
    two = environment.edit("f", b"3 and mine")

    (conflict,) = environment.revert(one, two)
    assert conflict.reason == "edited_between"
    assert environment.revert(two) == ()
    assert environment.files == {"f": b"2 and mine"}
    assert [conflict.reason for conflict in environment.revert(one)] == ["drifted"]


def test_a_revert_that_is_already_on_disk_changes_the_status_alone() -> None:
    environment = Desk({"f": b"1"})
    one = environment.edit("f", b"2")
    environment.put("f", b"1")

    (step,) = ledger.plan_revert(environment.patches, [one], environment.hash_on_disk).restores
    assert step.expected == step.target == digest(b"1")
    assert environment.revert(one) == ()
    assert environment.statuses() == ["reverted"]


def test_reverted_patches_are_made_again_in_one_step_a_file() -> None:
    environment = Desk({"f": b"1"})
    one, two = environment.edit("f", b"2"), environment.edit("f", b"3")
    environment.edit("new", b"1")
    environment.revert(*environment.patches)
    plan = ledger.plan_apply(environment.patches, environment.patches, environment.hash_on_disk)

    assert plan.restores[0] == Restore("f", digest(b"1"), digest(b"3"), digest(b"3"), None, (one.id, two.id))
    assert environment.apply(*environment.patches) == ()
    assert environment.files == {"f": b"3", "new": b"1"}
    assert (
        ledger.plan_apply(environment.patches, environment.patches, environment.hash_on_disk) == RestorePlan()
    ), "applied twice"


def test_a_patch_is_not_made_again_without_the_one_it_stands_on() -> None:
    environment = Desk({"f": b"1"})
    one, two, three = environment.edit("f", b"2"), environment.edit("f", b"3"), environment.edit("f", b"4")
    environment.revert(one, two, three)

    for chosen in ([three], [one, three]):
        (conflict,) = environment.apply(*chosen)
        assert (conflict.reason, "patch p2 " in conflict.words) == ("earlier_patch", True)
    assert environment.apply(one, two) == environment.apply(three) == ()
    assert environment.files == {"f": b"4"}


def test_a_patch_is_not_made_again_under_one_that_was_made_since() -> None:
    environment = Desk({"f": b"1"})
    one = environment.edit("f", b"2")
    environment.revert(one)
    environment.edit("f", b"3")
    environment.edit("f", b"1")

    (conflict,) = environment.apply(one)
    assert (conflict.reason, "patch p2 " in conflict.words) == ("later_patch", True)


def test_a_patch_is_not_made_again_on_other_bytes() -> None:
    environment = Desk({"f": b"1"})
    one = environment.edit("f", b"2")
    environment.revert(one)
    environment.put("f", b"by hand")

    assert [conflict.reason for conflict in environment.apply(one)] == ["drifted"]


def test_the_desk_notices_a_plan_that_overwrites_what_nobody_keeps() -> None:
    environment = Desk({"f": b"1"})
    environment.edit("f", b"2")
    environment.put("f", b"by hand")
    careless = Restore("f", digest(b"by hand"), digest(b"1"), digest(b"1"), None, ("p1",))

    with pytest.raises(AssertionError, match="nobody keeps"):
        environment.carry_out(RestorePlan((careless,)), "reverted")


@given(TREES, EDITS, st.booleans())
def test_reverting_all_gives_the_original_and_applying_all_the_result(
    tree: Files, edits: list[tuple[str, bytes | None]], at_once: bool
) -> None:
    environment = Desk(tree)
    edited(environment, edits)
    result = dict(environment.files)
    groups = [environment.patches] if at_once else [[patch] for patch in environment.patches]

    for group in reversed(groups):
        assert environment.revert(*group) == ()
    assert environment.files == tree
    for group in groups:
        assert environment.apply(*group) == ()
    assert environment.files == result


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "edit", "edit", "hand", "revert", "apply", "go"]),
        st.sampled_from(PATHS[:2]),
        st.sampled_from([None, b"1", b"2", b"3"]),
        st.sets(st.integers(0, 9), min_size=1, max_size=4),
    ),
    max_size=20,
)


@given(STEPS)
def test_no_sequence_overwrites_what_is_not_kept_and_many_patches_go_as_single_ones(
    steps: list[tuple[str, str, bytes | None, set[int]]],
) -> None:
    """The test's ledger checks what is overwritten."""
    chat = Chat({"f": b"0"})
    for what, path, data, numbers in steps:
        chosen = [patch for at, patch in enumerate(chat.shown()) if at in numbers]
        match what:
            case "turn":
                chat.turn((path, data))
            case "edit":
                edited(chat, [(path, data)], chat.head or chat.turn())
            case "hand":
                chat.put(path, data)
            case "revert":
                one_by_one(chat, chosen[::-1], Desk.revert)
            case "apply":
                one_by_one(chat, chosen, Desk.apply)
            case _:
                chat.go(headed(chat, min(numbers)))


def one_by_one(environment: Chat, chosen: list[Patch], move: Callable[..., tuple[Conflict, ...]]) -> None:
    twin = Desk(environment.files)
    twin.blobs, twin.patches = environment.blobs, environment.shown()
    refused = {conflict.path for conflict in move(environment, *chosen)}
    single: set[str] = set()
    for patch in chosen:
        if patch.file_path not in single:
            single |= {conflict.path for conflict in move(twin, patch)}
    paths = {patch.file_path for patch in chosen}
    for path in paths - refused - single:
        assert environment.files.get(path) == twin.files.get(path)


def test_a_rewind_undoes_the_turns_that_are_hidden_and_the_way_back_makes_them_again() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"), ("new", b"x"))
    chat.turn(("f", b"3"), ("f", None))
    for head, files in (("t1", {"f": b"2", "new": b"x"}), ("", {"f": b"1"}), ("t2", {"new": b"x"})):
        assert chat.go(head) == ()
        assert chat.files == files


def test_siblings_that_start_from_different_bytes_get_each_its_own() -> None:
    chat = Chat({"f": b"1"})
    one = chat.turn(("f", b"2"))
    chat.go("")
    chat.put("f", b"1 and mine")
    two = chat.turn(("f", b"3 and mine"))

    for head, data in ((one, b"2"), (two, b"3 and mine"), ("", b"1 and mine"), (one, b"2"), ("", b"1")):
        assert chat.go(head) == ()
        assert chat.files["f"] == data, head


def test_what_a_person_wrote_between_two_turns_stays_when_the_later_one_is_undone() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"))
    chat.put("f", b"2 and mine")
    chat.turn(("f", b"3 and mine"))

    for head, data in (("t1", b"2 and mine"), ("", b"1"), ("t1", b"2"), ("t2", b"3 and mine")):
        assert chat.go(head) == ()
        assert chat.files["f"] == data, head


def test_what_a_person_wrote_last_is_a_conflict_and_stays() -> None:
    chat = Chat({"f": b"1", "g": b"1"})
    chat.turn(("f", b"2"), ("g", b"2"))
    chat.put("f", b"by hand")

    assert chat.go("") == (Conflict("f", "drifted", "The file was edited from outside since"),)
    assert chat.files == {"f": b"by hand", "g": b"1"}


def test_a_file_put_back_by_other_means_to_an_earlier_state_is_a_conflict() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"))
    chat.turn(("f", b"3"))
    chat.put("f", b"1")

    assert [conflict.reason for conflict in chat.go("t1")] == ["drifted"]
    assert chat.go("") == ()


def test_turns_that_were_hidden_with_their_files_kept_need_no_step_to_come_back() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"))
    chat.head = ""

    assert ledger.plan_branch(chat.patches, set(), {"t1"}, chat.hash_on_disk) == RestorePlan()
    chat.turn(("f", b"3"))
    assert chat.go("t1") == ()
    assert chat.files == {"f": b"2"}


def test_a_file_in_the_middle_of_what_was_hidden_is_a_conflict() -> None:
    chat = Chat({"f": b"1"})
    for data in (b"2", b"3", b"4"):
        chat.turn(("f", data))
    chat.go("t2")
    chat.head = "t1"

    assert [conflict.reason for conflict in chat.go("")] == ["drifted"]


def test_a_turn_is_entered_from_the_bytes_it_began_with_also_when_a_sibling_made_them() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"))
    chat.go("")
    chat.put("f", b"2")
    two = chat.turn(("f", b"3"))

    assert chat.go("") == ()
    assert chat.files == {"f": b"2"}
    assert chat.go(two) == ()
    assert chat.files == {"f": b"3"}


def test_reverted_patches_are_no_part_of_a_branch() -> None:
    chat = Chat({"f": b"1"})
    chat.turn(("f", b"2"))
    chat.revert(*chat.patches)
    chat.put("f", b"by hand")

    assert chat.go("") == chat.go("t1") == ()
    assert chat.files == {"f": b"by hand"}


def test_a_deleted_file_comes_back_with_its_mode() -> None:
    chat = Chat({"f": b"1"})
    chat.edit("f", None, "t1", mode=0o700)
    plan = ledger.plan_branch(chat.patches, {"t1"}, set(), chat.hash_on_disk)

    assert plan == RestorePlan((Restore("f", None, digest(b"1"), digest(b"1"), 0o700, ()),))


WALKS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), EDITS),
        st.tuples(st.just("go"), st.integers(0, 10)),
        st.tuples(st.just("hand"), st.sampled_from(PATHS)),
    ),
    max_size=14,
)


def headed(chat: Chat, number: int) -> str:
    return ["", *chat.parents][number % (len(chat.parents) + 1)]


@given(TREES, WALKS)
def test_without_edits_by_hand_every_turn_has_the_files_it_had(
    tree: Files, walk: list[tuple[str, object]]
) -> None:
    chat = Chat(tree)
    had = {"": dict(tree)}
    for what, rest in walk:
        match what, rest:
            case "turn", list():
                chat.turn(*rest)
                had[chat.head] = dict(chat.files)
            case "go", int():
                assert chat.go(headed(chat, rest)) == ()
                assert chat.files == had[chat.head]


@given(TREES, WALKS)
def test_with_edits_by_hand_only_the_files_that_were_edited_since_conflict(
    tree: Files, walk: list[tuple[str, object]]
) -> None:
    """Every content is its own here, so that a file cannot come to known bytes by chance."""
    chat = Chat(tree)
    since: set[str] = set()
    for count, (what, rest) in enumerate(walk):
        match what, rest:
            case "turn", list():
                edits = [
                    (path, data and b"%d %d %s" % (count, at, data)) for at, (path, data) in enumerate(rest)
                ]
                since -= {path for path, data in edits if chat.files.get(path) != data}
                chat.turn(*edits)
            case "go", int():
                disk = dict(chat.files)
                conflicts = {conflict.path for conflict in chat.go(headed(chat, rest))}
                assert conflicts <= since
                since -= {path for path in PATHS if disk.get(path) != chat.files.get(path)}
                if conflicts:
                    return
            case "hand", str():
                chat.put(rest, b"by hand %d" % count)
                since.add(rest)
