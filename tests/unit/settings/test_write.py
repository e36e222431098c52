from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.settings import SettingsConflict, SettingsError, edit, files, load, read_scope, write_settings
from sidecar.settings.parsing import parse

from .conftest import Places

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")

SAID = """\
# What I like.
model = "a:b"   # the small one

[log] # loud
level = "info"

[session]
# enough
max_steps = 3
"""


def test_comments_and_order_survive(places: Places) -> None:
    places.put(places.user, SAID)

    write_settings(
        "user", None, {"session.max_steps": 4, "model": "a:c", "titles": "model", "store.busy_timeout": 20}
    )

    assert (
        places.user.read_text()
        == """\
# What I like.
model = "a:c"   # the small one
titles = "model"

[log] # loud
level = "info"

[session]
# enough
max_steps = 4

[store]
busy_timeout = 20
"""
    )


def test_none_removes_a_key(places: Places) -> None:
    places.put(places.user, SAID)

    write_settings("user", None, {"model": None, "log.level": None, "store.data_dir": None})

    assert read_scope("user").values == {"session.max_steps": 3}


def test_none_also_removes_what_is_not_known(places: Places) -> None:
    places.put(places.user, 'modle = "a:b"\n[old]\nx = 1\n')

    write_settings("user", None, {"modle": None, "old": None, "model": "a:b"})

    assert read_scope("user").values == {"model": "a:b"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[session]\nmax_steps = 9\n"),
        ('model = "a:b"', 'model = "a:b"\n\n[session]\nmax_steps = 9\n'),
        ("session.max_steps = 3 # so\n", "session.max_steps = 9 # so\n"),
        ("session = {max_steps = 3}\n", "session = {max_steps = 9}\n"),
        ("session = {}\n", "session = {max_steps = 9}\n"),
        ("[log]\r\n# x\r\n", "[log]\r\n# x\r\n\r\n[session]\r\nmax_steps = 9\r\n"),
        ("\ufeff[session]\nmax_steps = 3\n", "[session]\nmax_steps = 9\n"),
        ("# only a comment", "# only a comment\n\n[session]\nmax_steps = 9\n"),
    ],
)
def test_every_way_to_write_a_table_is_kept(places: Places, before: str, after: str) -> None:
    places.put(places.user, before)

    write_settings("user", None, {"session.max_steps": 9})

    assert places.user.read_bytes().decode() == after


HEAD = [*SAID.splitlines(keepends=True)[:2], "titles = 'words'\n", "\n"]
CHANGES = st.dictionaries(
    st.sampled_from(["model", "titles", "session.max_steps", "log.level", "store.data_dir"]), st.booleans()
)
VALUES: Mapping[str, object] = {
    "model": 'a:"\\\n',
    "titles": "model",
    "session.max_steps": 9,
    "log.level": "trace",
    "store.data_dir": ":memory:",
}


@given(CHANGES, st.permutations(HEAD), st.booleans())
def test_a_file_says_afterwards_what_it_said_and_the_changes(
    changes: dict[str, bool], head: list[str], tables: bool
) -> None:
    text = "".join(head) + (SAID[SAID.index("[log]") :] if tables else "")
    wanted = {name: VALUES[name] if keep else None for name, keep in changes.items()}
    expected = {**parse("", text), **wanted}

    after = edit.apply_changes("", text, wanted)

    assert parse("", after) == {name: value for name, value in expected.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"session.max_steps": "many"}, "`session.max_steps`: expected a whole number"),
        ({"session.max_stepz": 3}, "`session.max_stepz`: there is no such setting"),
        ({"session": {"max_steps": 3}}, "`session`: there is no such setting"),
        ({"chat_id": "tab-7"}, "`chat_id`: there is no such setting"),
        ({"model": "\ud800"}, "`model`: expected text"),
    ],
)
def test_a_bad_change_leaves_the_file_as_it_was(
    places: Places, changes: dict[str, object], said: str
) -> None:
    places.put(places.user, SAID)

    with pytest.raises(SettingsError, match=said):
        write_settings("user", None, changes)

    assert places.user.read_text() == SAID


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", "is not valid TOML"),
        ("unheard = 1\n", "line 1: `unheard`: there is no such setting"),
        ("session = 3\n", r"`session`: expected the table \[session\], found a value"),
    ],
)
def test_a_broken_file_is_not_written_over(places: Places, text: str, said: str) -> None:
    places.put(places.user, text)

    with pytest.raises(SettingsError, match=said):
        write_settings("user", None, {"session.max_steps": 4})

    assert places.user.read_text() == text


def test_a_project_gets_no_key_that_is_not_for_projects(places: Places) -> None:
    with pytest.raises(SettingsError, match="a project's file may not set this"):
        write_settings("project", str(places.project), {"store.data_dir": "/tmp"})

    assert not places.project_file.exists()


def test_a_projects_file_is_made_with_its_folder(places: Places) -> None:
    write_settings("project", str(places.project), {"model": "a:b"})

    found = load(project=str(places.project), environ={}, trusted=True).values_and_layers()["model"]
    assert found == ("a:b", "project")


def test_a_project_that_is_not_there_is_not_made(places: Places) -> None:
    with pytest.raises(SettingsError, match=r"cannot be written \(No such file"):
        write_settings("project", str(places.root / "absent"), {"model": "a:b"})

    assert not (places.root / "absent").exists()


def test_the_expected_version_lets_the_write_through(places: Places) -> None:
    write_settings("user", None, {"model": "a:b"}, expected_version=read_scope("user").version)
    write_settings("user", None, {"model": "a:c"}, expected_version=read_scope("user").version)

    assert load(environ={}).model == "a:c"


@pytest.mark.parametrize("expected", ["absent", "0123456789abcdef"])
def test_another_version_is_a_conflict(places: Places, expected: str) -> None:
    places.put(places.user, SAID)

    with pytest.raises(SettingsConflict, match=r"config\.toml: has changed since it was read"):
        write_settings("user", None, {"model": "a:c"}, expected_version=expected)

    assert places.user.read_text() == SAID


def test_a_change_during_the_write_is_a_conflict(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.put(places.user, SAID)
    fsync = os.fsync

    def and_meanwhile(fd: int) -> None:
        places.put(places.user, "# somebody else\n")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", and_meanwhile)
    with pytest.raises(SettingsConflict):
        write_settings("user", None, {"model": "a:c"})

    assert _contents(places.user.parent) == {"config.toml": "# somebody else\n"}


def test_a_full_disk_leaves_the_old_file_and_no_litter(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.put(places.user, SAID)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SettingsError, match=r"cannot be written \(No space left on device\)"):
        write_settings("user", None, {"model": "a:c"})

    assert _contents(places.user.parent) == {"config.toml": SAID}


def test_a_change_that_changes_nothing_writes_nothing(places: Places) -> None:
    places.put(places.user, SAID)
    before = places.user.stat()

    write_settings("user", None, {"model": "a:b", "titles": None})

    assert places.user.stat() == before


@posix
def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(places: Places) -> None:
    write_settings("user", None, {"model": "a:b"})
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (places.user, places.user.parent)]
    places.user.chmod(0o644)
    write_settings("user", None, {"model": "a:c"})

    assert [*modes, stat.S_IMODE(places.user.stat().st_mode)] == [0o600, 0o700, 0o644]


@posix
def test_a_users_link_is_followed(places: Places) -> None:
    kept = places.put(places.root / "dotfiles" / "sidecar.toml", SAID)
    places.user.parent.mkdir(parents=True)
    places.user.symlink_to(kept)

    write_settings("user", None, {"model": "a:c"})

    assert places.user.is_symlink()
    assert 'model = "a:c"' in kept.read_text()


@posix
@pytest.mark.parametrize("linked", ["folder", "file"])
def test_a_projects_link_is_refused(places: Places, linked: str) -> None:
    outside = places.root / "outside"
    outside.mkdir()
    if linked == "folder":
        places.project_file.parent.symlink_to(outside)
    else:
        places.project_file.parent.mkdir()
        places.project_file.symlink_to(outside / "made.toml")

    with pytest.raises(SettingsError, match="is a link, and is not written through"):
        write_settings("project", str(places.project), {"model": "a:b"})

    assert list(outside.iterdir()) == []


def test_a_file_at_the_bound_is_not_written_past_it(places: Places) -> None:
    text = "#" * (files.MAX_FILE_BYTES - 1) + "\n"
    places.put(places.user, text)

    with pytest.raises(SettingsError, match="is too long"):
        write_settings("user", None, {"model": "a:b"})

    assert places.user.read_text() == text


def _contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}
