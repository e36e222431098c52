"""A file is written whole or not at all, whatever fails or comes between."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.system import files
from sidecar.system.files import write_whole
from sidecar.system.own_files import FolderGuard
from sidecar.system.safe_open import FileRefused, read_regular
from tests.support.patience import PATIENCE_S

KILLED = """
import os, sys
from sidecar.system import files
os.fsync = lambda fd: os.kill(os.getpid(), 9)
files.write_whole(sys.argv[1], b"new", overwrite=True)
"""


def reason(path: Path, *, overwrite: bool) -> str:
    with pytest.raises(FileRefused) as refused:
        write_whole(str(path), b"new", overwrite=overwrite)
    return refused.value.reason


@pytest.mark.parametrize(
    ("number", "named"), [(errno.ENOSPC, "full"), (errno.EROFS, "readonly"), (errno.EIO, "io")]
)
def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: str
) -> None:
    (tmp_path / "file").write_text("old")

    def fail(fd: int, data: bytes) -> None:
        os.write(fd, data[:1])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "write_all", fail)
    assert reason(tmp_path / "file", overwrite=True) == named
    assert (os.listdir(tmp_path), (tmp_path / "file").read_text()) == (["file"], "old")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_leaves_the_old_file_and_one_that_can_be_recognised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "file"], timeout=PATIENCE_S, check=False)
    left, file = sorted(os.listdir(tmp_path))
    assert (file, (tmp_path / "file").read_text()) == ("file", "old")
    assert (left[:9], left[-4:]) == (".sidecar-", ".tmp")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_link_that_comes_after_the_look_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    (tmp_path / "theirs").write_text("theirs")
    written = files.write_all

    def slip(fd: int, data: bytes) -> None:
        written(fd, data)
        (tmp_path / "file").symlink_to("theirs")

    monkeypatch.setattr(files, "write_all", slip)
    assert reason(tmp_path / "file", overwrite=overwrite) == ("link" if overwrite else "exists")
    assert ((tmp_path / "theirs").read_text(), sorted(os.listdir(tmp_path))) == ("theirs", ["file", "theirs"])


def test_a_file_that_comes_after_the_look_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = files.write_all

    def slip(fd: int, data: bytes) -> None:
        written(fd, data)
        (tmp_path / "file").write_text("theirs")

    monkeypatch.setattr(files, "write_all", slip)
    assert reason(tmp_path / "file", overwrite=False) == "exists"
    assert (os.listdir(tmp_path), (tmp_path / "file").read_text()) == (["file"], "theirs")


def test_what_is_guarded_is_free_again_after_its_release(tmp_path: Path) -> None:
    (tmp_path / "own.db-lock").write_bytes(b"x")
    guard = FolderGuard(str(tmp_path), "own.db")
    with pytest.raises(FileRefused, match="own database"):
        read_regular(str(tmp_path / "own.db-lock"), 9)
    guard.release()
    assert read_regular(str(tmp_path / "own.db-lock"), 9) == b"x"
