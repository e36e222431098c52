"""What the file of a project sets before the user trusts it: an allow list, checked for every key."""

from __future__ import annotations

import json

import pytest

from sidecar.settings import KEYS, SettingsError, load
from sidecar.settings.key import UNTRUSTED_KEYS, SettingKey
from sidecar.settings.known import NAMED_TABLES

from .conftest import Places

RESTRICTING = {"permissions.ask", "permissions.deny", "tools.deny"}
"""A literal copy: whoever lets an untrusted project set more changes this line too, and is asked why."""

TEXTS = {
    "model": "a:b",
    "mode": "auto",
    "sandbox": "off",
    "titles": "model",
    "log.level": "debug",
    "engine": "native",
}
LISTS = {
    "tools.environment": ["DATABASE_URL"],
    "fetch.allow_private": ["localhost:3000"],
    "routing.noisy_programs": ["terragrunt"],
}


def other_value(key: SettingKey) -> object:
    """A valid value that is not the default, where there is another."""
    if key.kind == "flag":
        return not key.default
    if key.kind == "ratio":
        return 0.5
    if key.kind in ("integer", "seconds"):
        return key.high
    if key.is_list:
        return LISTS.get(key.name, ["run(ls)"] if key.name.startswith("permissions.") else ["x"])
    if key.choices and key.name not in TEXTS:
        return key.choices[-1]
    return TEXTS.get(key.name, "x")


FILE_KEYS = [key for key in KEYS.values() if key.files]


@pytest.mark.parametrize("key", FILE_KEYS, ids=lambda key: key.name)
def test_an_untrusted_project_sets_only_what_is_on_the_list(places: Places, key: SettingKey) -> None:
    value = other_value(key)
    assert key.narrow(value) is not None
    places.put(places.project_file, f"{key.name} = {json.dumps(value)}\n")
    if key.project == "never":
        with pytest.raises(SettingsError, match="a project's file may not set this"):
            load(project=str(places.project), environ={}, trusted=True)
        return

    settings = load(project=str(places.project), environ={})
    trusted = load(project=str(places.project), environ={}, trusted=True)

    allowed = key.name in RESTRICTING
    assert settings.origin(key.name) == ("project" if allowed else "default")
    assert [key.name in warning for warning in settings.warnings] == ([] if allowed else [True])
    assert (trusted.origin(key.name), trusted.warnings) == ("project", ())


def test_the_list_is_what_can_only_restrict() -> None:
    assert set(UNTRUSTED_KEYS) == RESTRICTING
    assert {key.name for key in KEYS.values() if key.project == "any"} == RESTRICTING


def test_what_is_on_the_list_adds_to_the_lists_of_the_user() -> None:
    """A list that replaced the user's would remove denials."""
    effects = {"permissions.ask", "permissions.deny"}
    assert [name for name in RESTRICTING - effects if not KEYS[name].adds] == []


def test_a_new_key_needs_trust_without_a_word_about_it() -> None:
    assert SettingKey("session.max_cost", "integer", 1, "A new one.", high=9).project == "trusted"


def test_no_table_of_the_users_names_is_open_to_an_untrusted_project() -> None:
    reaches = {
        table.table: {field.project for field in table.fields.values()} for table in NAMED_TABLES.values()
    }
    assert reaches == {
        "providers": {"never"},
        "mcp": {"trusted"},
        "adapters": {"never"},
        "engines": {"never"},
    }
