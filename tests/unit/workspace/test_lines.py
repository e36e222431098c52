"""Changes have as few lines as can be, git counts the same, and no text costs more than its bound."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.workspace import lines
from sidecar.workspace.lines import Region, changed_regions

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

Pair = tuple[list[str], list[str]]


def counted(regions: list[Region]) -> tuple[int, int]:
    """Lines added and removed."""
    return sum(end - start for _, _, start, end in regions), sum(end - start for start, end, _, _ in regions)


def fewest(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The same, by the whole table of how many lines any two beginnings have in common."""
    row = [0] * (len(new) + 1)
    for line in old:
        before = 0
        for at, other in enumerate(new, 1):
            before, row[at] = row[at], before + 1 if line == other else max(row[at], row[at - 1])
    return len(new) - row[-1], len(old) - row[-1]


@pytest.mark.parametrize(
    ("old", "new", "regions"),
    [
        ("0123", "130", [(0, 1, 0, 0), (2, 3, 1, 1), (4, 4, 2, 3)]),
        ("urr", "rru", [(0, 1, 0, 0), (3, 3, 2, 3)]),
        ("a}b", "a}x}b", [(2, 2, 2, 4)]),
        ("", "ab", [(0, 0, 0, 2)]),
        ("ab", "", [(0, 2, 0, 0)]),
        ("ab", "ab", []),
    ],
)
def test_lines_that_moved_or_recur_stay_where_most_can(old: str, new: str, regions: list[Region]) -> None:
    assert changed_regions(old, new) == regions


LETTERS = st.lists(st.sampled_from("abcdefgh"), max_size=40)


@given(LETTERS, LETTERS)
@settings(max_examples=400, deadline=None)
def test_no_changes_have_fewer_lines(one: list[str], other: list[str]) -> None:
    """Lines that only one side has are left out: a common one among them is git's affair, and tested with it."""
    old, new = [line for line in one if line in other], [line for line in other if line in one]

    assert counted(changed_regions(old, new)) == fewest(old, new)
    assert counted(changed_regions(one[:7], other[:7])) == fewest(one[:7], other[:7])


def test_a_twin_that_holds_on_to_unique_lines_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_PAIRS", 0)

    assert counted(changed_regions("urr", "rru")) != fewest("urr", "rru")


@pytest.mark.slow
@given(LETTERS, LETTERS, st.sampled_from([0, 10, 60, 300]))
@settings(max_examples=300, deadline=None)
def test_what_is_found_past_the_bound_is_right_too(old: list[str], new: list[str], bound: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_PAIRS", bound)
        regions = changed_regions(old, new)

    assert all(old_from < old_to or new_from < new_to for old_from, old_to, new_from, new_to in regions)
    assert all(one[1] < following[0] for one, following in pairwise(regions))
    starts = [(0, 0), *((old_to, new_to) for _, old_to, _, new_to in regions)]
    ends = [*((old_from, new_from) for old_from, _, new_from, _ in regions), (len(old), len(new))]
    for (at_old, at_new), (old_end, new_end) in zip(starts, ends, strict=True):
        assert old[at_old:old_end] == new[at_new:new_end]


class Repository:
    """Two files side by side, for git to count what differs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        self._env = {**os.environ, **quiet, "GIT_CEILING_DIRECTORIES": str(folder)}

    def counted(self, old: list[str], new: list[str]) -> tuple[int, int]:
        for name, side in (("old", old), ("new", new)):
            (self._folder / name).write_text("".join(f"{line}\n" for line in side))
        command = ["git", "diff", "--no-index", "--numstat", "old", "new"]
        done = subprocess.run(command, cwd=self._folder, env=self._env, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        added, removed = done.stdout.split()[:2] or (0, 0)
        return int(added), int(removed)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("git"))


def rewritten(seed: int) -> Pair:
    """Two texts with lines of their own, blank ones, and some that both may have, in drawn shares."""
    draw = random.Random(seed)
    shared, own, blank = draw.choice(["ab", "abcdefgh"]), draw.random(), draw.random()

    def line(side: str, at: int) -> str:
        if draw.random() < own:
            return f"{side} {at}"
        return "" if draw.random() < blank else draw.choice(shared)

    old, new = ([line(side, at) for at in range(draw.randrange(61))] for side in ("old", "new"))
    return old, new


def moved(seed: int) -> Pair:
    """A text, and the same with a few lines moved, removed and doubled."""
    draw = random.Random(seed)
    old = [str(draw.randrange(30)) for _ in range(draw.randrange(1, 61))]
    new = list(old)
    for _ in range(draw.randrange(8)):
        line = draw.choice(old)
        if line in new and draw.random() < 0.8:
            new.remove(line)
        if draw.random() < 0.8:
            new.insert(draw.randrange(len(new) + 1), line)
    return old, new


PAIRS = st.builds(
    lambda make, seed: make(seed), st.sampled_from([rewritten, moved]), st.integers(0, 2**32)
) | st.tuples(LETTERS, LETTERS)


@pytest.mark.slow
@needs_git
@given(PAIRS)
@settings(max_examples=200, deadline=None)
def test_git_counts_the_same_lines(repository: Repository, pair: Pair) -> None:
    assert counted(changed_regions(*pair)) == repository.counted(*pair)


REWRITTEN: Pair = (
    ["a", *(f"old {n}" for n in range(5)), "", *(f"old {n}" for n in range(5, 10)), "b"],
    ["a", *["", "new"] * 5, "b"],
)
"""A blank line among others that are gone, and a text with many."""


@needs_git
def test_a_common_line_among_strangers_belongs_to_them_as_in_git(repository: Repository) -> None:
    assert changed_regions(*REWRITTEN) == [(1, 12, 1, 11)]
    assert repository.counted(*REWRITTEN) == (10, 11)


@needs_git
def test_a_twin_that_keeps_every_common_line_is_caught(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_among_strangers", lambda *_: False)

    assert counted(changed_regions(*REWRITTEN)) == fewest(*REWRITTEN) != repository.counted(*REWRITTEN)


class Line:
    """A line that counts how often it is compared."""

    compared = 0

    def __init__(self, text: str) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        Line.compared += 1
        return isinstance(other, Line) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


LENGTH = 20_000

HARD: dict[str, Callable[[random.Random], list[str]]] = {
    "all new": lambda draw: [str(draw.random()) for _ in range(LENGTH)],
    "two letters": lambda draw: draw.choices("ab", k=LENGTH),
    "shuffled": lambda draw: draw.sample([str(n) for n in range(LENGTH)], LENGTH),
    "shuffled pairs": lambda draw: draw.sample([str(n // 2) for n in range(LENGTH)], LENGTH),
    "blocks": lambda draw: [str(n) if n % 200 == 0 else draw.choice("ab") for n in range(LENGTH)],
    "alike after noise": lambda draw: [*draw.choices("abcd", k=1000), *["a"] * (LENGTH - draw.randrange(99))],
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", HARD)
def test_long_texts_cost_a_bounded_number_of_comparisons(kind: str) -> None:
    draw = random.Random(7)
    old, new = ([Line(text) for text in HARD[kind](draw)] for _ in range(2))
    Line.compared = 0
    regions = changed_regions(old, new)
    compared = Line.compared

    # Beside the pairs, each line is looked up some ten times in each stretch that it is part of.
    assert compared <= lines.MAX_PAIRS + 10 * (len(old) + len(new)) * (lines.MAX_DEPTH + 1)
    assert regions


def edited(draw: random.Random, old: list[str], edits: int) -> list[str]:
    new = list(old)
    for _ in range(edits):
        at = draw.randrange(len(new))
        new[at : at + draw.randrange(2)] = [draw.choice(["", "}", f"new {draw.random()}"])]
    return new


def test_few_edits_in_a_long_text_cost_as_much_as_reading_it() -> None:
    draw = random.Random(7)
    old = [draw.choice(["", "}", str(n), f"x {n}"]) for n in range(LENGTH)]
    new = edited(draw, old, 20)
    marked = [[Line(text) for text in side] for side in (old, new)]
    Line.compared = 0

    assert counted(changed_regions(*marked)) == counted(changed_regions(old, new))
    assert Line.compared <= 12 * (len(old) + len(new))


def test_a_large_part_that_moved_is_found_by_its_unique_lines() -> None:
    draw = random.Random(7)
    old = [draw.choice(["", "}", str(n), f"x {n}"]) for n in range(LENGTH)]
    new = [*old[:2000], *old[5000:15_000], *old[2000:5000], *old[15_000:]]

    assert counted(changed_regions(old, new)) == (3000, 3000)
