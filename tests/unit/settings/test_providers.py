"""The tables [providers.NAME]: what they take, what they refuse and where, and what of them is shown."""

from __future__ import annotations

import re
import tomllib

import pytest

from sidecar.settings import SettingsError, document, load, read_scope, write_settings
from sidecar.settings.providers import PROVIDER_TABLES, TYPES

from .conftest import Places

KEY = "sk-canary-0123456789"

FULL = f"""\
[providers.lmstudio]
type = "openai"
base_url = "http://127.0.0.1:1234/v1"
api_key_env = "LMSTUDIO_KEY"
api_key = "{KEY}"
headers = {{"X-Secret" = "{KEY}", "X-Title" = "My app"}}
timeout = 60
retries = 0

[providers.lmstudio.models."qwen/qwen3.5:8b"]
window = 32768
max_output = 4096
prices = {{input = 0.5, output = 1, cached = 0}}
"""


def message(places: Places, text: str) -> str:
    places.put(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load(environ={})
    return str(caught.value).removeprefix(str(places.user))


def test_a_table_is_read_key_by_key(places: Places) -> None:
    places.put(places.user, FULL)

    assert load(environ={}).providers == {
        "lmstudio": {
            "type": "openai",
            "base_url": "http://127.0.0.1:1234/v1",
            "api_key_env": "LMSTUDIO_KEY",
            "api_key": KEY,
            "headers": {"X-Secret": KEY, "X-Title": "My app"},
            "timeout": 60.0,
            "retries": 0,
            "models": {
                "qwen/qwen3.5:8b": {
                    "window": 32768,
                    "max_output": 4096,
                    "prices": {"input": 0.5, "output": 1, "cached": 0},
                }
            },
        }
    }


def test_without_tables_there_are_no_providers(places: Places) -> None:
    assert load(environ={}).providers == {}


def test_the_named_file_goes_before_the_users(places: Places) -> None:
    places.put(places.user, "[providers.openai]\ntimeout = 10\nretries = 1\n")
    named = str(places.put(places.other, "[providers.openai]\ntimeout = 20\n"))

    settings = load(config_file=named, environ={})

    assert settings.providers == {"openai": {"timeout": 20.0, "retries": 1}}
    assert settings.origin("providers.openai.timeout") == "file"


@pytest.mark.parametrize("name", TYPES)
def test_a_name_that_is_a_type_needs_none(places: Places, name: str) -> None:
    places.put(places.user, f"[providers.{name}]\nretries = 2\n")

    assert load(environ={}).providers == {name: {"retries": 2}}


def test_secrets_are_masked_wherever_settings_are_shown(places: Places) -> None:
    places.put(places.user, FULL)
    settings = load(environ={})

    shown = settings.values_and_layers()

    assert shown["providers.lmstudio.api_key"] == ("(set)", "user")
    assert shown["providers.lmstudio.headers"] == ({"X-Secret": "(set)", "X-Title": "(set)"}, "user")
    assert read_scope("user").masked_values()["providers.lmstudio.api_key"] == "(set)"
    assert KEY not in f"{shown} {settings!r} {read_scope('user').masked_values()}"


CHOICES = ", ".join(f'"{name}"' for name in TYPES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# x\n[providers.lmstudio]\nbase_url = 'http://x/v1'",
            f", line 2: `providers.lmstudio`: `type` is missing. Set it in the same file to one of {CHOICES}",
        ),
        (
            "[providers.x]",
            f", line 1: `providers.x`: `type` is missing. Set it in the same file to one of {CHOICES}",
        ),
        (
            "[providers.openai]\ntimeout = 3\nbase_ulr = 'http://x'",
            ", line 3: `providers.openai.base_ulr`: there is no such setting. Did you mean `base_url`?",
        ),
        (
            "[providers.openai]\ncolour = 'green'",
            ", line 2: `providers.openai.colour`: there is no such setting. [providers.openai] has "
            + ", ".join(f"`{name}`" for name in PROVIDER_TABLES.fields),
        ),
        (
            "[providers.openai]\ntype = 'opnai'",
            f", line 2: `providers.openai.type`: expected one of {CHOICES}, "
            'found "opnai". Did you mean `openai`?',
        ),
        ("providers = 3", ", line 1: `providers`: expected the table [providers], found a value"),
        ("[providers]\nx = 3", ", line 2: `providers.x`: expected the table [providers.x], found a value"),
        ("[providers.echo]\nretries = 1", ", line 1: `providers.echo`: this provider has nothing to set"),
        (
            '[providers."a.b"]\nretries = 1',
            ", line 1: `providers.a.b`: a provider's name has 1 to 64 letters, digits, `_` and `-`",
        ),
        (
            "[provider.openai]\nretries = 1",
            ", line 1: `provider`: there is no such setting. Did you mean `providers`?",
        ),
        (
            "[providers.openai]\ntimeout = 0",
            ", line 2: `providers.openai.timeout`: expected a number of seconds from 1 to 3600, found 0",
        ),
        (
            "[providers.openai]\nretries = 21",
            ", line 2: `providers.openai.retries`: expected a whole number from 0 to 20, found 21",
        ),
        (
            '[providers.openai.models."a.b/c:1"]\nwindow = 3\nmax_outptu = 3',
            ", line 3: `providers.openai.models`: 'a.b/c:1': `max_outptu`: there is no such key. "
            "Did you mean `max_output`?",
        ),
        (
            '[providers.openai.models."a.b"]\nwindow = "big"',
            ", line 2: `providers.openai.models`: 'a.b': `window`: expected a whole number from 1 to 1000000000",
        ),
        (
            "[providers.openai.models.a]\nprices = {input = -1}",
            ", line 2: `providers.openai.models`: 'a': `prices.input`: "
            "expected US dollars a million tokens, from 0",
        ),
        (
            "[providers.openai.models]\na = 3",
            ", line 2: `providers.openai.models`: 'a': expected a table such as {window = 32768}",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_remedy(places: Places, text: str, said: str) -> None:
    assert message(places, text) == said


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{KEY}@x/v1",
        f"https://x/v1?key={KEY}",
        f"ftp://x/{KEY}",
        f"x/{KEY}",
        f"https:///{KEY}",
        f"http://x:port/{KEY}",
        f"http://x/{KEY} /",
        f"http://[{KEY}",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(places: Places, url: str) -> None:
    said = message(places, f"[providers.openai]\nbase_url = '{url}'")

    assert said == (
        ", line 2: `providers.openai.base_url`: expected an http or https address without user, password and query"
    )


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{KEY} {KEY}"',
        f'api_key = ["{KEY}"]',
        f'api_key = "{KEY}\\n"',
        'api_key = ""',
        'api_key = "(set)"',
        f'api_key_env = "{KEY}"',
        f'headers = {{"X" = "{KEY}\\r\\nY: z"}}',
        f'headers = {{"X Y" = "{KEY}"}}',
        f'headers = {{"X" = ["{KEY}"]}}',
        f'headers = "{KEY}"',
        'headers = {"X" = "(set)"}',
        f'models = "{KEY}"',
    ],
)
def test_what_may_hold_a_secret_is_not_repeated(places: Places, line: str) -> None:
    said = message(places, f"[providers.openai]\n{line}")

    name = line.partition(" ")[0]
    assert said.startswith(f", line 2: `providers.openai.{name}`: expected ")
    assert KEY not in said


@pytest.mark.parametrize(
    "field", ["base_url = 'http://evil/v1'", "api_key_env = 'HOME'", "headers = {A = 'b'}"]
)
def test_a_project_has_no_say_in_providers(places: Places, field: str) -> None:
    places.put(places.project_file, f"[providers.openai]\n{field}\n")

    with pytest.raises(
        SettingsError, match=r"line 2: `providers\.openai\.\w+`: a project's file may not set"
    ):
        load(project=str(places.project), environ={})


def test_a_provider_is_written_and_reads_back(places: Places) -> None:
    models = {"qwen/qwen3.5:8b": {"window": 32768, "prices": {"input": 0.5}}, "a.b": {}}
    changes: dict[str, object] = {
        "providers.lmstudio.type": "openai",
        "providers.lmstudio.base_url": "http://127.0.0.1:1234/v1",
        "providers.lmstudio.api_key": KEY,
        "providers.lmstudio.models": models,
    }

    write_settings("user", None, changes)

    assert load(environ={}).providers["lmstudio"] == {
        "type": "openai",
        "base_url": "http://127.0.0.1:1234/v1",
        "api_key": KEY,
        "models": models,
    }
    assert tomllib.loads(places.user.read_text())["providers"]["lmstudio"]["models"] == models


def test_a_providers_table_is_taken_away_as_a_whole(places: Places) -> None:
    places.put(places.user, "# mine\n" + FULL + "\n[log]\nlevel = 'info' # loud\n")

    write_settings("user", None, {"providers.lmstudio": None})

    assert read_scope("user").values == {"log.level": "info"}
    assert "# loud" in places.user.read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"providers.x.base_url": "http://x/v1"}, "`providers.x`: `type` is missing"),
        ({"providers.lmstudio.type": None}, "`providers.lmstudio`: `type` is missing"),
        ({"providers.openai.api_key": "(set)"}, "`providers.openai.api_key`: expected a key"),
        ({"providers.openai": {"retries": 1}}, "`providers.openai`: there is no such setting"),
        (
            {"providers.openai.models.a": {"window": 1}},
            "`providers.openai.models.a`: there is no such setting",
        ),
        ({"providers.openai.headers": {"X": "(set)"}}, "`providers.openai.headers`: expected a table"),
    ],
)
def test_a_bad_change_leaves_the_file_as_it_was(
    places: Places, changes: dict[str, object], said: str
) -> None:
    places.put(places.user, FULL)

    with pytest.raises(SettingsError, match=re.escape(said)):
        write_settings("user", None, changes)

    assert places.user.read_text() == FULL


def test_the_providers_on_the_page_load(places: Places) -> None:
    page = document.PAGE.read_text("utf-8").split("## Providers")[1]
    places.put(places.user, page.split("```toml\n")[1].split("```")[0])

    assert list(load(environ={}).providers) == ["lmstudio", "vllm", "openrouter", "azure"]
