"""The open files of a chat: who is listed where, who makes room, and that all of it survives a restart."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.failures import Refused
from sidecar.workspace.open_files import OpenFileLimits, OpenFiles, nearest_path

SMALL = OpenFileLimits(max_recent=3, max_pinned=2)
NONE = OpenFiles((), OpenFileLimits())


def names(files: OpenFiles) -> list[str]:
    return [file.path for file in files.display_order()]


def pins(files: OpenFiles) -> list[str]:
    return [file.path for file in files.display_order() if file.pinned]


def with_open(*paths: str, limits: OpenFileLimits = SMALL) -> OpenFiles:
    files = OpenFiles((), limits)
    for now, path in enumerate(paths):
        files = files.opened(path, "user", now)
    return files


def restarted(files: OpenFiles) -> OpenFiles:
    """Through the journal's JSON and back."""
    return OpenFiles.from_state(json.loads(json.dumps(files.state())), files.limits)


def test_pinned_files_come_first_and_then_the_most_recent() -> None:
    files = with_open("/a", "/b", "/c").pinned("/a", "user", 9).touched("/b", "grep", 10)

    assert names(files) == ["/a", "/b", "/c"]
    assert names(files.pinned("/c", "user", 11)) == ["/c", "/a", "/b"]


def test_the_least_recently_touched_unpinned_file_makes_room() -> None:
    files = with_open("/a", "/b", "/c").touched("/a", "read_file", 9)

    assert names(files.opened("/d", "user", 10)) == ["/d", "/a", "/c"]
    assert names(files.pinned("/b", "user", 10).opened("/d", "user", 11)) == ["/b", "/d", "/a", "/c"]


def test_clocks_that_tie_or_jump_backwards_do_not_change_the_order() -> None:
    files = OpenFiles((), SMALL)
    for path, now in (("/a", 500), ("/b", 500), ("/c", 3), ("/a", 1), ("/d", 0)):
        files = files.touched(path, "read_file", now)

    assert names(files) == ["/d", "/a", "/c"]
    assert [(file.added_at, file.last_viewed_at) for file in files.display_order()] == [
        (0, 0),
        (500, 1),
        (3, 3),
    ]


def test_a_touch_keeps_who_opened_the_file_and_what_was_seen_unless_more_is_seen() -> None:
    files = NONE.opened("/a", "read_file", 1, seen="one").touched("/a", "grep", 2)

    assert files.seen_of("/a") == "one"
    assert files.touched("/a", "edit_file", 3, seen="two").seen_of("/a") == "two"
    assert files.files[0].opened_by == "read_file"
    assert files.seen_of("/unknown") is None


def test_opening_a_pinned_file_again_leaves_it_pinned() -> None:
    files = NONE.pinned("/a", "user", 1).opened("/a", "read_file", 2)

    assert pins(files) == ["/a"]


def test_one_pin_too_many_is_refused_with_the_pinned_files_named() -> None:
    files = NONE
    for number in range(10):
        files = files.pinned(f"/p{number}", "user", number)

    for attempt in (files.pinned, lambda *rest: files.opened(*rest, pinned=True)):
        with pytest.raises(
            Refused, match=r"10 files are pinned.*unpin one of them first: /p9, /p8"
        ) as refused:
            attempt("/q", "user", 11)
    assert refused.value.name == "precondition_failed"
    assert refused.value.params == {"limit": 10, "pinned": [f"/p{number}" for number in range(9, -1, -1)]}
    assert files.pinned("/p3", "user", 12).display_order()[0].path == "/p3", (
        "one that is pinned needs no further pin"
    )


def test_taking_a_pin_away_may_close_the_least_recent_file() -> None:
    files = with_open("/old").pinned("/old", "user", 1)
    for path in ("/a", "/b", "/c"):
        files = files.opened(path, "user", 2)

    assert names(files.unpinned("/old")) == ["/c", "/b", "/a"]
    assert names(files.pinned("/a", "user", 3).unpinned("/old")) == ["/a", "/c", "/b", "/old"]


def test_closing_or_unpinning_an_unknown_file_names_the_nearest() -> None:
    files = with_open("/home/ada/src/main.py", "/home/ada/src/other.py")

    for attempt in (files.closed, files.unpinned):
        with pytest.raises(
            Refused, match=r"/home/ada/src/mian.py is not open; did you mean /home/ada/src/main.py\?"
        ) as no:
            attempt("/home/ada/src/mian.py")
        assert (no.value.name, no.value.params) == (
            "not_found",
            {"path": "/home/ada/src/mian.py", "nearest": "/home/ada/src/main.py"},
        )
    with pytest.raises(Refused, match="is not open; no other files are"):
        NONE.closed("/a")
    with pytest.raises(Refused) as refused:
        files.closed("\ud800" + "x" * 10_000)
    assert len(refused.value.message.encode()) < 400


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("main.py", "/w/src/main.py"),
        ("./src/main.py", "/w/src/main.py"),
        ("/elsewhere/notes.md", "/w/docs/notes.md"),
        ("/w/src/maim.py", "/w/src/main.py"),
        ("nots.md", "/w/docs/notes.md"),
        ("", None),
        ("/", None),
        ("zzz", None),
    ],
)
def test_the_nearest_path_ends_like_it_or_has_its_name_or_is_spelt_like_it(
    asked: str, found: str | None
) -> None:
    assert nearest_path(asked, ["/w/src/main.py", "/w/docs/notes.md"]) == found


def test_clearing_closes_all_or_leaves_the_pinned_ones() -> None:
    files = with_open("/a", "/b").pinned("/b", "user", 5)

    assert files.cleared() == OpenFiles((), SMALL)
    assert names(files.cleared(keep_pinned=True)) == ["/b"]


def test_opening_many_pins_the_first_names_the_next_and_counts_what_is_left_out() -> None:
    paths = [f"/f{number:02}" for number in range(40)]
    files, not_pinned, left_out = with_open("/before", limits=OpenFileLimits()).opened_all(
        paths, "user", 7, pin=True
    )

    assert pins(files) == paths[9::-1]
    assert not_pinned == paths[10:35]
    assert left_out == 5
    assert names(files)[10:] == paths[34:9:-1], "a file of the pattern drove out another one"


def test_opening_many_without_pins_opens_as_many_as_may_be_recent() -> None:
    files, not_pinned, left_out = with_open("/old").opened_all(
        ["/a", "/b", "/a", "/c", "/d"], "user", 7, pin=False
    )

    assert (names(files), not_pinned, left_out) == (["/c", "/b", "/a"], [], 1)


def test_opening_many_counts_the_pins_that_are_in_use() -> None:
    before = with_open().pinned("/b", "user", 1)
    files, not_pinned, left_out = before.opened_all(["/a", "/b", "/c"], "user", 7, pin=True)

    assert (pins(files), not_pinned, left_out) == (["/b", "/a"], ["/c"], 0)


def test_a_chat_without_stored_open_files_starts_empty() -> None:
    other = with_open("/of/another/chat")

    assert OpenFiles.from_state(None, SMALL).display_order() == []
    assert OpenFiles.from_state([], SMALL).display_order() == []
    assert names(other) == ["/of/another/chat"]


def test_a_restart_keeps_recency_timestamps_and_pins() -> None:
    files = with_open("/a", "/b", "/c").pinned("/b", "user", 77).touched("/a", "read_file", 5, seen="s")
    again = restarted(files)

    assert again == files
    assert [
        (file.path, file.pinned, file.added_at, file.last_viewed_at) for file in again.display_order()
    ] == [
        ("/b", True, 1, 77),
        ("/a", False, 0, 5),
        ("/c", False, 2, 2),
    ]
    assert names(again.opened("/d", "user", 0).opened("/e", "user", 0)) == ["/b", "/e", "/d", "/a"]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ([{"path": "/a"}, {"path": "/b"}], [("/b", 0, 0, 2, "user"), ("/a", 0, 0, 1, "user")]),
        ([{"path": "/a", "addedAt": 4, "touch": 9, "newKey": {}}], [("/a", 4, 4, 9, "user")]),
        (
            [{"path": "/a", "touch": 9, "openedBy": "grep"}, {"path": "/b", "lastViewedAt": 3, "touch": 2}],
            [("/a", 0, 0, 9, "grep"), ("/b", 0, 3, 2, "user")],
        ),
        ([{"path": "/a", "touch": 9}, {"path": "/b"}], [("/b", 0, 0, 2, "user"), ("/a", 0, 0, 1, "user")]),
        (
            ["/a", None, {}, {"path": 1}, {"path": "/b", "touch": "x"}, {"path": "/c"}],
            [("/c", 0, 0, 1, "user")],
        ),
        (
            [{"path": "/a", "touch": 1}, {"path": "/b", "touch": 2}, {"path": "/a", "touch": 3}],
            [("/a", 0, 0, 3, "user"), ("/b", 0, 0, 2, "user")],
        ),
    ],
)
def test_an_older_or_broken_state_is_read_as_far_as_it_goes(state: list[Any], found: list[Any]) -> None:
    files = OpenFiles.from_state(state, SMALL)

    assert [
        (file.path, file.added_at, file.last_viewed_at, file.touch, file.opened_by)
        for file in files.display_order()
    ] == found


def test_a_state_beyond_the_limits_loses_its_oldest_pins_and_files() -> None:
    state = [{"path": f"/{number}", "pinned": number < 4, "touch": number} for number in range(7)]
    files = OpenFiles.from_state(state, SMALL)

    assert (pins(files), names(files)) == (["/3", "/2"], ["/3", "/2", "/6", "/5", "/4"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "touch", "pin", "unpin", "close", "clear", "all", "restart"]),
        st.sampled_from([f"/f{number}" for number in range(8)]),
        st.integers(-5, 5),
    ),
    max_size=40,
)


class Model:
    """The same, written plainly: a list of (path, pinned, added, viewed), the least recent first."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, bool, int, int]] = []

    def touch(self, path: str, now: int, pin: bool = False) -> None:
        pinned, added = next(((p, a) for name, p, a, _ in self.entries if name == path), (False, now))
        if pin and not pinned and sum(entry[1] for entry in self.entries) == SMALL.max_pinned:
            raise Refused("precondition_failed", "")
        self.entries = [entry for entry in self.entries if entry[0] != path]
        self.entries.append((path, pinned or pin, added, now))
        self.evict()

    def change(self, path: str, close: bool) -> None:
        if path not in [entry[0] for entry in self.entries]:
            raise Refused("not_found", "")
        self.entries = [
            entry if entry[0] != path else (path, False, *entry[2:])
            for entry in self.entries
            if not close or entry[0] != path
        ]
        self.evict()

    def evict(self) -> None:
        while sum(not entry[1] for entry in self.entries) > SMALL.max_recent:
            self.entries.remove(next(entry for entry in self.entries if not entry[1]))

    def step(self, what: str, path: str, now: int) -> None:
        match what:
            case "open" | "touch":
                self.touch(path, now)
            case "pin":
                self.touch(path, now, pin=True)
            case "unpin":
                self.change(path, close=False)
            case "close":
                self.change(path, close=True)
            case "clear":
                self.entries = [entry for entry in self.entries if entry[1]]
            case "all":
                self.touch(path, now)
                self.touch("/g", now)


def stepped(files: OpenFiles, what: str, path: str, now: int) -> OpenFiles:
    match what:
        case "open":
            return files.opened(path, "user", now)
        case "touch":
            return files.touched(path, "grep", now)
        case "pin":
            return files.pinned(path, "user", now)
        case "unpin":
            return files.unpinned(path)
        case "close":
            return files.closed(path)
        case "clear":
            return files.cleared(keep_pinned=True)
        case "all":
            return files.opened_all([path, "/g"], "user", now, pin=False)[0]
        case _:
            return restarted(files)


def refusal(move: Callable[[], None]) -> str | None:
    try:
        move()
    except Refused as error:
        return error.name
    return None


@given(STEPS)
def test_any_sequence_of_steps_does_what_a_plain_list_does(steps: list[tuple[str, str, int]]) -> None:
    files, model = OpenFiles((), SMALL), Model()

    def take(step: tuple[str, str, int]) -> None:
        nonlocal files
        files = stepped(files, *step)

    for step in steps:
        assert refusal(partial(take, step)) == refusal(partial(model.step, *step))
        assert [(f.path, f.pinned, f.added_at, f.last_viewed_at) for f in files.files] == model.entries
        assert restarted(files) == files
