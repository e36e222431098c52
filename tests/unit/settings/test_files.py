from __future__ import annotations

import os
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.settings import SettingsError, files, load
from sidecar.settings.parsing import parse

from .conftest import Places


def message(places: Places, text: str) -> str:
    """What loading says of a user's file with this text, after the file's name."""
    places.put(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load(environ={})
    said = str(caught.value)
    assert said.startswith(str(places.user))
    return said.removeprefix(str(places.user))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('modle = "a:b"', ", line 1: `modle`: there is no such setting. Did you mean `mode` or `model`?"),
        (
            "\n[session]\nmax_stepz = 3",
            ", line 3: `session.max_stepz`: there is no such setting. Did you mean `session.max_steps`?",
        ),
        (
            "max_steps = 3",
            ", line 1: `max_steps`: there is no such setting. Did you mean `session.max_steps`?",
        ),
        (
            "# x\n[sesion]\nmax_steps = 3",
            ", line 2: `sesion`: there is no such setting. Did you mean `session`?",
        ),
        (
            "[session.inner]\nx = 1",
            ", line 1: `session.inner`: there is no such setting. docs/configuration.md lists the keys",
        ),
        (
            '"session.max_steps" = 3',
            ": `session.max_steps`: there is no such setting. Did you mean `session.max_steps`?",
        ),
        (
            'chat_id = "x"',
            ", line 1: `chat_id`: there is no such setting. docs/configuration.md lists the keys",
        ),
        ("session = 3", ", line 1: `session`: expected the table [session], found a value"),
        ("[model]\nx = 1", ", line 1: `model`: expected text that is not empty, found a table"),
        ("model = [\n  1,\n]", ", line 1: `model`: expected text that is not empty, found a list"),
        ('model = ""', ', line 1: `model`: expected text that is not empty, found ""'),
        ('model = "a\\u0000"', ', line 1: `model`: expected text that is not empty, found "a\\x00"'),
        ("titles = true", ', line 1: `titles`: expected one of "words", "model", found true'),
        (
            'titles = "word"',
            ', line 1: `titles`: expected one of "words", "model", found "word". Did you mean `words`?',
        ),
        (
            "session.max_steps = 0",
            ", line 1: `session.max_steps`: expected a whole number from 1 to 10000, found 0",
        ),
        (
            "session.max_steps = true",
            ", line 1: `session.max_steps`: expected a whole number from 1 to 10000, found true",
        ),
        (
            "session.max_steps = 3.0",
            ", line 1: `session.max_steps`: expected a whole number from 1 to 10000, found 3.0",
        ),
        (
            "x = '''\nlog.level\n'''",
            ", line 1: `x`: there is no such setting. docs/configuration.md lists the keys",
        ),
        (
            "[store]\nbusy_timeout = nan",
            ", line 2: `store.busy_timeout`: expected a number of seconds from 1 to 600, found nan",
        ),
        (
            "[store]\nbusy_timeout = 0x" + "f" * 9000,
            ", line 2: `store.busy_timeout`: "
            "expected a number of seconds from 1 to 600, found a far larger number",
        ),
        (
            '"\\u001b[2J" = 1',
            ", line 1: `\\x1b[2J`: there is no such setting. docs/configuration.md lists the keys",
        ),
        ("model = ", ": is not valid TOML: Invalid value (at line 1, column 9)"),
        ("a\nb", ": is not valid TOML: Expected '=' after a key in a key/value pair (at line 1, column 2)"),
        ("model = 'a'\nmodel = 'b'", ": is not valid TOML: Cannot overwrite a value (at line 2, column 12)"),
        ("x = " + "[" * 5000, ": is nested too deeply"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_remedy(places: Places, text: str, said: str) -> None:
    assert message(places, text) == said


def test_an_endless_name_is_no_endless_search(places: Places) -> None:
    name = "m" * 200_000

    assert message(places, f"{name} = 1").startswith(f": `{'m' * 80}…`: there is no such setting")


def test_a_long_value_is_cut_in_the_message(places: Places) -> None:
    assert message(places, f'mode = "{"m" * 9000}"').endswith("found " + '"' + "m" * 59 + "…")


def test_a_file_that_is_not_utf8_is_told_with_the_line(places: Places) -> None:
    places.put(places.user, "")
    places.user.write_bytes(b'# one\nmodel = "\xff"\n')

    with pytest.raises(SettingsError, match=r"line 2: is not UTF-8\. Save it as UTF-8"):
        load(environ={})


def test_windows_line_ends_and_a_byte_order_mark_are_read(places: Places) -> None:
    places.put(places.user, '\ufeffmodel = "a:b"\r\n[session]\r\nmax_steps = 3\r\n')

    assert load(environ={}).session.max_steps == 3


def test_whole_seconds_are_a_number_too(places: Places) -> None:
    places.put(places.user, "store.busy_timeout = 30")

    assert load(environ={}).store.busy_timeout == 30.0


def test_a_file_over_the_bound_is_refused(places: Places) -> None:
    assert message(places, "#" * (files.MAX_FILE_BYTES + 1)) == ": is too long. Shorten it to 262144 bytes"


def test_a_folder_in_the_files_place_is_refused(places: Places) -> None:
    places.project_file.mkdir(parents=True)

    with pytest.raises(SettingsError, match=r"config\.toml: (is not a regular file|cannot be read)"):
        load(project=str(places.project), environ={})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs in folders")
def test_a_pipe_in_the_files_place_is_refused_without_waiting(places: Places) -> None:
    places.project_file.parent.mkdir()
    os.mkfifo(places.project_file)

    with pytest.raises(SettingsError, match="is not a regular file"):
        load(project=str(places.project), environ={})


def test_a_file_that_cannot_be_read_is_an_error(places: Places) -> None:
    places.user.parent.mkdir(parents=True)
    places.user.symlink_to(places.user.name)

    with pytest.raises(SettingsError, match=r"cannot be read \(.+\)\. Check the path and its permissions"):
        load(environ={})


def test_an_impossible_project_path_is_an_error(places: Places) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load(project="a\0b", environ={})


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SettingsError):
        parse("config.toml", text)
