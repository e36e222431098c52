"""Which folder of ours a path lies in, whatever way it is spelled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.system.own_files import enclosing_folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "deep" / "er").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("path", ["", "deep", "deep/er", "absent/x", "../own", "deep/../../own/deep", "."])
def test_the_folder_and_what_is_in_it_lie_in_it(own: Path, path: str) -> None:
    assert enclosing_folder(os.path.join(own, path), ["/absent", str(own)]) == str(own)


@pytest.mark.parametrize("path", ["..", "../owner", "../own-2/deep", "../absent", "/"])
def test_what_contains_it_or_is_beside_it_does_not(own: Path, path: str) -> None:
    assert enclosing_folder(os.path.join(own, path), [str(own)]) is None


def test_a_link_on_either_side_is_resolved(own: Path, tmp_path: Path) -> None:
    (tmp_path / "to").symlink_to(own / "deep")
    (tmp_path / "same").symlink_to(own)
    assert enclosing_folder(str(tmp_path / "to" / "er"), [str(own)]) == str(own)
    assert enclosing_folder(str(own / "deep"), [str(tmp_path / "same")]) == str(tmp_path / "same")


def test_a_folder_that_is_absent_is_compared_by_its_path(tmp_path: Path) -> None:
    absent = str(tmp_path / "later")
    assert enclosing_folder(os.path.join(absent, "x"), [absent]) == absent


def test_a_folder_with_the_same_inode_is_the_same_folder(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a bind mount, or another case on a file system that ignores it."""
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: real(str(path).replace("/OWN", "/own"), **more))
    assert enclosing_folder(str(own.with_name("OWN") / "deep"), [str(own)]) == str(own)
