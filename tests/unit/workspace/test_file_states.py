"""What a program has changed in a project: kinds, unknown bytes, and what is not compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.workspace import file_states
from sidecar.workspace.file_states import OutsideChange, changes_between, take_states
from sidecar.workspace.paths import Workspace


def test_nothing_has_changed_between_two_looks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    states = take_states(Workspace(str(tmp_path)), {})

    assert changes_between(states, take_states(Workspace(str(tmp_path)), states)) == []


def test_every_kind_of_change_has_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "changed.txt").write_text("old")
    (tmp_path / "gone.txt").write_text("going")
    workspace = Workspace(str(tmp_path))
    before = take_states(workspace, {})
    (tmp_path / "changed.txt").write_text("new")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "made.txt").write_text("made")

    assert changes_between(before, take_states(workspace, before)) == [
        OutsideChange("changed.txt", "modify", b"old", b"new", True),
        OutsideChange("gone.txt", "delete", b"going", None, True),
        OutsideChange("sub/made.txt", "create", None, b"made", True),
    ]


def test_a_file_that_is_written_with_the_same_bytes_has_not_changed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    workspace = Workspace(str(tmp_path))
    before = take_states(workspace, {})
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.txt").write_text("one")

    assert changes_between(before, take_states(workspace, before)) == []


def test_what_git_ignores_is_not_compared_unless_it_is_open(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("one")
    (tmp_path / "open.log").write_text("one")
    workspace = Workspace(str(tmp_path))

    assert sorted(take_states(workspace, {}, ["open.log"])) == [".gitignore", "open.log"]


def test_bytes_beyond_the_bounds_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_states, "MAX_FILE_BYTES", 4)
    (tmp_path / "large.txt").write_text("too large")
    workspace = Workspace(str(tmp_path))
    before = take_states(workspace, {})
    (tmp_path / "large.txt").write_text("tiny")

    assert changes_between(before, take_states(workspace, before)) == [
        OutsideChange("large.txt", "modify", None, b"tiny", False)
    ]
