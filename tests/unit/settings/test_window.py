"""The settings about the window: what fits them, and what of them a chat's configuration starts from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.chat.sessions.config import effective_config
from sidecar.context.budget import ConfiguredCaps
from sidecar.model.chats import Budgets, CompactionConfig, GateSwitches, OwnConfig
from sidecar.server.settings_conversion import chat_defaults, project_settings
from sidecar.settings import SettingsError, load
from sidecar.settings.edit import write_settings

from .conftest import Places

SHARE = "a share of the window, from 0 to 1: 0.8 is four fifths"


def refusal(places: Places, text: str) -> str:
    places.put(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load(environ={})
    return str(caught.value).removeprefix(f"{places.user}, ")


@pytest.mark.parametrize("key", ["background", "blocking", "target"])
@pytest.mark.parametrize("value", ["80", "1.01", "0", "-0.5", "nan", "inf", "true", '"0.8"'])
def test_a_share_that_is_none_is_refused_with_an_explanation(places: Places, key: str, value: str) -> None:
    found = refusal(places, f"[compaction]\n{key} = {value}\n")

    assert found == f"line 2: `compaction.{key}`: expected {SHARE}, found {value}"


@pytest.mark.parametrize(("value", "share"), [("1", 1.0), ("0.001", 0.001), ("0.8", 0.8)])
def test_a_share_of_the_window_is_a_number_up_to_one(places: Places, value: str, share: float) -> None:
    places.put(places.user, f"compaction.background = {value}\n")

    assert load(environ={}).compaction.background == share


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[context.gates]\nopen_files = 'sometimes'",
            'line 2: `context.gates.open_files`: expected one of "auto", "always", "never", found "sometimes"',
        ),
        (
            "[context.gatez]\nopen_files = 'auto'",
            "line 1: `context.gatez`: there is no such setting. Did you mean `context.gates`?",
        ),
        (
            "[context.gates]\ngit_dif = 'auto'",
            "line 2: `context.gates.git_dif`: there is no such setting. Did you mean `context.gates.git_diff`?",
        ),
        (
            "context.gates = 'never'",
            "line 1: `context.gates`: expected the table [context.gates], found a value",
        ),
        (
            "[context]\npatches = 'never'",
            "line 2: `context.patches`: there is no such setting. Did you mean `context.gates.patches`?",
        ),
        (
            "[context]\nper_file = 0",
            "line 2: `context.per_file`: expected a whole number from 1 to 10000000, found 0",
        ),
        (
            "[compaction]\nkeep_turns = 0",
            "line 2: `compaction.keep_turns`: expected a whole number from 1 to 100, found 0",
        ),
        ("[rules]\nenabled = 1", "line 2: `rules.enabled`: expected true or false, found 1"),
        ("[rules]\npaths = 'a'", 'line 2: `rules.paths`: expected a list of paths, found "a"'),
        ("[rules]\npaths = ['a', '']", 'line 2: `rules.paths`: expected a list of paths, found "" in it'),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(places: Places, text: str, said: str) -> None:
    assert refusal(places, text) == said


def test_paths_of_rules_are_seen_from_the_folder_of_their_file(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(places.root / "home"))
    monkeypatch.setenv("USERPROFILE", str(places.root / "home"))
    places.put(places.user, 'rules.paths = ["team", "~/mine.md"]\n')

    team, mine = load(environ={}).rules.paths

    assert (team, mine) == (str(places.user.parent / "team"), str(places.root / "home" / "mine.md"))


def test_a_project_switches_no_rules_off_until_it_is_trusted(places: Places) -> None:
    places.put(places.project_file, "rules.enabled = false\n")

    before = load(project=str(places.project), environ={})
    after = load(project=str(places.project), environ={}, trusted=True)

    assert (before.rules.enabled, after.rules.enabled) == (True, False)
    assert before.warnings == (
        f"{places.project_file}: `rules.enabled` is ignored until the project is trusted (`project/trust`)",
    )


def test_a_gate_is_written_into_a_table_of_its_own(places: Places) -> None:
    places.put(places.user, "# mine\n[context]\nper_file = 500 # little\n")

    write_settings("user", None, {"context.gates.git_diff": "never", "compaction.enabled": False})

    settings = load(environ={})
    assert (settings.context.per_file, settings.context.gates.git_diff) == (500, "never")
    assert not settings.compaction.enabled
    assert places.user.read_text().startswith("# mine\n[context]\nper_file = 500 # little\n")


def test_without_files_a_chat_starts_from_the_same_defaults_as_without_settings(places: Places) -> None:
    defaults, wanted = msgspec.to_builtins(chat_defaults(load(environ={}))), ConfiguredCaps()

    assert defaults == {
        "model": "auto",
        "engine": "native",
        "mode": "ask",
        "maxSteps": 50,
        "budgets": {
            "perFile": wanted.per_file,
            "openFiles": wanted.open_files,
            "diffs": wanted.diffs,
            "gitDiff": wanted.git_diff,
            "retrieval": wanted.retrieval,
        },
        "gates": dict.fromkeys(("openFiles", "patches", "gitDiff", "retrieval"), GateSwitches().open_files),
        "compaction": {
            "enabled": CompactionConfig().enabled,
            "background": CompactionConfig().background,
            "blocking": CompactionConfig().blocking,
        },
    }
    assert set(defaults["budgets"]) == set(Budgets.__struct_encode_fields__)
    assert set(defaults["gates"]) == set(GateSwitches.__struct_encode_fields__)
    assert project_settings(load(environ={})).values.context.rules == wanted.rules


def test_what_a_chat_leaves_out_of_an_object_is_as_the_settings_say(places: Places) -> None:
    places.put(
        places.user,
        "context = {per_file = 7, output_reserve = 512, gates = {patches = 'never'}}\n"
        "compaction = {background = 0.5, blocking = 0.6}\n",
    )
    stored: OwnConfig = {
        "compaction": {"enabled": False, "blocking": 0.9},
        "gates": {"gitDiff": "always"},
        "budgets": {"diffs": 9, "perFile": None},
    }

    found = effective_config(chat_defaults(load(environ={})), stored, None)

    shown = msgspec.to_builtins(found)
    assert {key: shown[key] for key in ("compaction", "gates", "budgets", "outputReserve")} == {
        "compaction": {"enabled": False, "background": 0.5, "blocking": 0.9},
        "gates": {"openFiles": "auto", "patches": "never", "gitDiff": "always", "retrieval": "auto"},
        "budgets": {"perFile": 7, "openFiles": 8000, "diffs": 9, "gitDiff": 3000, "retrieval": 2000},
        "outputReserve": 512,
    }
    assert stored["compaction"] == {"enabled": False, "blocking": 0.9}


@pytest.mark.parametrize(
    "stored",
    [
        {"tools": {"deny": ["grep"]}},
        {"tools": {"allow": [], "deny": []}},
        {"compaction": {"postponedUntil": 7}},
        {"meta": {"colour": "red", "tags": [1, None]}},
        {"mcpServers": [{"name": "docs", "command": "docs-server"}], "extraFolders": ["/a"]},
        {"effort": "high", "window": 9000, "instructions": "", "exclude": ["open_files"]},
        {"mode": "read-only", "model": "fake:small", "maxSteps": 1, "outputReserve": 5},
    ],
)
def test_a_chats_own_keys_are_shown_as_it_has_set_them(places: Places, stored: Any) -> None:
    defaults = chat_defaults(load(environ={}))
    base = msgspec.to_builtins(defaults)

    shown = msgspec.to_builtins(effective_config(defaults, stored, "/project"))

    merged = {"compaction": {**base["compaction"], **stored.get("compaction", {})}}
    assert shown == {**base, **stored, **merged, "projectPath": "/project"}


@pytest.mark.parametrize(
    "damaged",
    [
        {"window": "large"},
        {"gates": ["always"]},
        {"budgets": {"perFile": "many"}},
        {"mode": "anything-goes"},
        {"compaction": {"background": None}},
        {"keyOfALaterVersion": True},
        {"tools": {"only": ["grep"]}},
    ],
)
def test_a_stored_key_that_cannot_be_read_counts_as_not_set(places: Places, damaged: Any) -> None:
    defaults = chat_defaults(load(environ={}))

    stored: Any = {**damaged, "effort": "low"}
    assert effective_config(defaults, stored, None) == msgspec.structs.replace(defaults, effort="low")
