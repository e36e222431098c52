"""The identity of an installation: made once, private, the same for every process, never taken from a broken file."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from sidecar.settings import files, installation
from sidecar.settings.installation import identify


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config" / "sidecar"
    monkeypatch.setattr(files, "user_file", lambda: str(folder / "config.toml"))
    return folder / installation.FILE_NAME


def test_it_is_made_once_and_is_for_its_owner_alone(path: Path) -> None:
    first, second = identify(), identify()
    assert (first.id, first.is_new, second.is_new) == (second.id, True, False)
    assert path.read_text() == f"{first.id}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [installation.FILE_NAME]


def test_two_installations_differ(path: Path) -> None:
    first = identify()
    path.unlink()
    assert identify().id != first.id


def test_processes_that_start_together_agree(path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(identify().id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert set(found) == {identify().id}


@pytest.mark.parametrize("text", ["", "short", "Z" * 32, "0" * 31, "0" * 33, "\0" * 32])
def test_what_is_no_identity_is_replaced(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    made = identify()
    assert (made.is_new, path.read_text()) == (True, f"{made.id}\n")


def test_where_none_can_be_kept_the_machine_has_one(path: Path) -> None:
    path.parent.parent.mkdir(parents=True)
    path.parent.write_text("a file where the folder should be")
    first, second = identify(), identify()
    assert (first.id, first.is_new) == (second.id, False)
    assert len(first.id) == installation.LENGTH
