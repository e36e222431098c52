"""A diff of many files within a limit: each has its share, and none is lost without a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.workspace.diff import unified_diff
from sidecar.workspace.diff_shares import clip_files, share_limit, split_files


def diff_of(name: str, lines: int) -> str:
    body = unified_diff(name, None, "".join(f"{name} line {n}\n" for n in range(lines)).encode()).text
    return f"diff --git a/{name} b/{name}\n{body}"


def test_a_huge_file_does_not_hide_the_rest() -> None:
    text = diff_of("a.lock", 20_000) + diff_of("b.py", 3) + diff_of("c.py", 5)
    shown, cut = clip_files(text, 4000)

    assert cut
    assert len(shown) <= 4000
    assert "+b.py line 2\n" in shown
    assert "+c.py line 4\n" in shown
    assert "+a.lock line 0\n" in shown
    assert "lines of 1 hunk hidden" in shown
    assert [part.split()[3] for part in split_files(shown)] == ["b/a.lock", "b/b.py", "b/c.py"]


def test_files_without_a_share_are_counted() -> None:
    text = "".join(diff_of(f"{n}.py", 40) for n in range(30))
    shown, _ = clip_files(text, 2000)
    assert len(shown) <= 2100
    assert len(split_files(shown)) == 8
    assert "… the changes of 22 more files hidden\n" in shown


def test_what_fits_is_whole() -> None:
    text = diff_of("a.py", 3) + diff_of("b.py", 3)
    assert clip_files(text, len(text)) == (text, False)


@given(st.lists(st.integers(1, 10_000), min_size=1), st.integers(0, 100_000))
def test_shares_use_the_room_and_no_more(sizes: list[int], room: int) -> None:
    limit = share_limit(sizes, room)
    taken = sum(min(size, limit) for size in sizes)
    assert taken <= max(room, 0)
    assert taken == sum(sizes) or room - taken < len(sizes)


@pytest.mark.parametrize("room", [0, 1, 10])
def test_no_room_is_no_error(room: int) -> None:
    shown, cut = clip_files(diff_of("a.py", 30), room)
    assert cut
    assert "hidden" in shown
