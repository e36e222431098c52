"""The tables [mcp.NAME]: what they take, what they refuse and where, whose count, and what of them is shown."""

from __future__ import annotations

import re

import pytest

from sidecar.settings import SettingsError, load, read_scope, write_settings
from sidecar.settings.mcp import SERVER_TABLES
from sidecar.tools.mcp import parse_servers

from .conftest import Places

KEY = "sk-canary-0123456789"

FULL = f"""\
[mcp.notes]
command = "npx"
args = ["-y", "notes-server", ""]
env = {{NOTES_TOKEN = "{KEY}", EMPTY = ""}}
cwd = "there"
timeout = 90
start_timeout = 2.5

[mcp.web]
url = "https://mcp.example.com/@me/mcp?key={KEY}"
headers = {{Authorization = "Bearer {KEY}"}}
enabled = false
"""


def message(places: Places, text: str) -> str:
    places.put(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load(environ={})
    return str(caught.value).removeprefix(str(places.user))


def names(places: Places, *, trusted: bool) -> list[str]:
    settings = load(project=str(places.project), environ={}, trusted=trusted)
    return [server["name"] for server in settings.mcp_servers()]


def test_the_servers_are_told_as_a_chats_configuration_names_them(places: Places) -> None:
    places.put(places.user, FULL)

    servers = load(environ={}).mcp_servers()

    assert servers == [
        {
            "name": "notes",
            "command": "npx",
            "args": ["-y", "notes-server", ""],
            "env": {"NOTES_TOKEN": KEY, "EMPTY": ""},
            "cwd": str(places.user.parent / "there"),
            "timeoutMs": 90_000,
            "startTimeoutMs": 2_500,
        },
        {
            "name": "web",
            "url": f"https://mcp.example.com/@me/mcp?key={KEY}",
            "headers": {"Authorization": f"Bearer {KEY}"},
            "enabled": False,
        },
    ]
    assert [server.name for server in parse_servers(servers, "mcp")] == ["notes", "web"]


def test_the_defaults_on_the_page_are_those_of_the_mounts(places: Places) -> None:
    (server,) = parse_servers([{"name": "x", "command": "y"}], "mcp")
    fields = SERVER_TABLES.fields

    assert fields["timeout"].default == server.timeout_ms / 1000
    assert fields["start_timeout"].default == server.start_timeout_ms / 1000
    assert (fields["enabled"].default, fields["args"].default) == (server.enabled, server.args)


def test_without_tables_there_are_no_servers(places: Places) -> None:
    assert load(environ={}).mcp_servers() == []


def test_secrets_are_masked_wherever_settings_are_shown(places: Places) -> None:
    places.put(places.user, FULL)
    settings = load(environ={})

    shown = settings.values_and_layers()

    assert shown["mcp.notes.env"] == ({"NOTES_TOKEN": "(set)", "EMPTY": "(set)"}, "user")
    assert shown["mcp.web.url"] == ("https://mcp.example.com/@me/mcp?(set)", "user")
    assert shown["mcp.web.headers"] == ({"Authorization": "(set)"}, "user")
    assert KEY not in f"{shown} {settings!r} {read_scope('user').masked_values()}"


def test_a_projects_servers_count_once_it_is_trusted(places: Places) -> None:
    places.put(places.user, "[mcp.mine]\ncommand = 'a'")
    places.put(
        places.project_file, "[mcp.theirs]\ncommand = 'b'\nargs = ['c']\n[mcp.other]\nurl = 'http://x'"
    )

    assert names(places, trusted=False) == ["mine"]
    assert names(places, trusted=True) == ["mine", "theirs", "other"]
    assert load(project=str(places.project), environ={}).warnings == (
        f"{places.project_file}: `mcp.theirs` is ignored until the project is trusted (`project/trust`)",
        f"{places.project_file}: `mcp.other` is ignored until the project is trusted (`project/trust`)",
    )


def test_a_later_server_of_the_same_name_gets_nothing_of_the_earlier_one(places: Places) -> None:
    places.put(places.user, FULL)
    places.put(places.project_file, "[mcp.notes]\nurl = 'http://127.0.0.1:9/mcp'")

    untrusted, trusted = (
        load(project=str(places.project), environ={}, trusted=trusted).mcp["notes"]
        for trusted in (False, True)
    )

    assert untrusted["env"] == {"NOTES_TOKEN": KEY, "EMPTY": ""}
    assert trusted == {"url": "http://127.0.0.1:9/mcp"}


def test_the_named_file_has_servers_too(places: Places) -> None:
    places.put(places.user, FULL)
    named = str(places.put(places.other, "[mcp.third]\ncommand = 'x'\ncwd = '.'"))

    settings = load(config_file=named, environ={})

    assert list(settings.mcp) == ["notes", "web", "third"]
    assert (settings.mcp["third"]["cwd"], settings.origin("mcp.third.cwd")) == (str(places.root), "file")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# x\n[mcp.notes]\nenabled = true",
            ", line 2: `mcp.notes`: neither `command` nor `url` is there. "
            "Set `command` for a server to start, or `url` for one to reach",
        ),
        (
            "[mcp.notes]\ncommand = 'x'\nurl = 'http://x'",
            ", line 1: `mcp.notes`: both `command` and `url` are there. "
            "Set `command` for a server to start, or `url` for one to reach",
        ),
        (
            "[mcp.notes]\nurl = 'http://x'\nargs = ['x']",
            ", line 3: `mcp.notes.args`: goes with `command` only",
        ),
        (
            "[mcp.notes]\ncommand = 'x'\nheaders = {A = 'b'}",
            ", line 3: `mcp.notes.headers`: goes with `url` only",
        ),
        (
            "[mcp.notes]\ncomand = 'x'",
            ", line 2: `mcp.notes.comand`: there is no such setting. Did you mean `command`?",
        ),
        (
            "[mcp.notes]\ntransport = 'stdio'",
            ", line 2: `mcp.notes.transport`: there is no such setting. [mcp.notes] has "
            + ", ".join(f"`{name}`" for name in SERVER_TABLES.fields),
        ),
        (
            "[mcp.notes]\ncommand = ['npx']",
            ", line 2: `mcp.notes.command`: expected text that is not empty, found a list",
        ),
        (
            "[mcp.notes]\ncommand = 'x'\nenabled = 'no'",
            ', line 3: `mcp.notes.enabled`: expected true or false, found "no"',
        ),
        (
            "[mcp.notes]\ncommand = 'x'\ntimeout = 0",
            ", line 3: `mcp.notes.timeout`: expected a number of seconds from 1 to 3600, found 0",
        ),
        ("mcp = 3", ", line 1: `mcp`: expected the table [mcp], found a value"),
        ("[mcp]\nx = 3", ", line 2: `mcp.x`: expected the table [mcp.x], found a value"),
        (
            '[mcp."a b"]\ncommand = "x"',
            ", line 1: `mcp.a b`: a server's name has 1 to 64 letters, digits, `_` and `-`",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_remedy(places: Places, text: str, said: str) -> None:
    assert message(places, text) == said


@pytest.mark.parametrize(
    "line",
    [
        f'args = "{KEY}"',
        f'args = ["{KEY}", 3]',
        f'args = ["{KEY}\\u0000"]',
        f'env = "{KEY}"',
        f'env = {{"A=B" = "{KEY}"}}',
        f'env = {{"" = "{KEY}"}}',
        f'env = {{A = "{KEY}\\u0000"}}',
        'env = {A = "(set)"}',
        "env = {A = 3}",
        f'url = "https://user:{KEY}@x/mcp"',
        f'url = "ftp://x/{KEY}"',
        'url = "https://x/mcp?(set)"',
        f'headers = {{"X" = "{KEY}\\r\\nY: z"}}',
    ],
)
def test_what_may_hold_a_secret_is_not_repeated(places: Places, line: str) -> None:
    said = message(places, f"[mcp.notes]\n{line}")

    name = line.partition(" ")[0]
    assert said.startswith(f", line 2: `mcp.notes.{name}`: expected ")
    assert KEY not in said


def test_a_server_is_written_and_reads_back(places: Places) -> None:
    changes: dict[str, object] = {
        "mcp.notes.command": "npx",
        "mcp.notes.args": ["-y", "notes-server"],
        "mcp.notes.env": {"NOTES_TOKEN": KEY},
        "mcp.notes.enabled": False,
    }

    write_settings("user", None, changes)

    assert load(environ={}).mcp_servers() == [
        {
            "name": "notes",
            "command": "npx",
            "args": ["-y", "notes-server"],
            "env": {"NOTES_TOKEN": KEY},
            "enabled": False,
        }
    ]


def test_a_servers_table_is_taken_away_as_a_whole(places: Places) -> None:
    places.put(places.user, FULL)

    write_settings("user", None, {"mcp.notes": None})

    assert list(load(environ={}).mcp) == ["web"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mcp.x.args": ["y"]}, "`mcp.x`: neither `command` nor `url` is there"),
        ({"mcp.notes.command": None}, "`mcp.notes`: neither `command` nor `url` is there"),
        ({"mcp.notes.url": "http://x"}, "`mcp.notes`: both `command` and `url` are there"),
        ({"mcp.notes.env": {"A": "(set)"}}, "`mcp.notes.env`: expected a table of variables"),
        ({"mcp.notes.args": ["\ud800"]}, "`mcp.notes.args`: expected a list of texts"),
        ({"mcp.notes": {"command": "x"}}, "`mcp.notes`: there is no such setting"),
        ({"mcp.notes.env.A": "b"}, "`mcp.notes.env.A`: there is no such setting"),
    ],
)
def test_a_bad_change_leaves_the_file_as_it_was(
    places: Places, changes: dict[str, object], said: str
) -> None:
    places.put(places.user, FULL)

    with pytest.raises(SettingsError, match=re.escape(said)):
        write_settings("user", None, changes)

    assert places.user.read_text() == FULL
