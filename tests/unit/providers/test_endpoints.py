"""Which address and which key a provider gets, from the layers that may name one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import anyio
import pytest

from sidecar.model.failures import Failure, ProviderFailed
from sidecar.providers import keyrings
from sidecar.providers.endpoint import Endpoint, ModelFacts
from sidecar.providers.endpoints import Endpoints
from sidecar.settings import Settings, SettingsError, keys
from sidecar.system import redact
from tests.support.patience import PATIENCE_S

KEY = "sk-canary-0123456789"
OTHER = "sk-canary-abcdefghij"
OPENAI = "https://api.openai.com/v1"


class FakeKeyring(ModuleType):
    """Stands in for the package; `trouble` is what its backend raises."""

    def __init__(self, kept: dict[str, str] | None = None, trouble: Exception | None = None) -> None:
        super().__init__("keyring")
        self.__spec__ = sys.modules["sys"].__spec__
        self.kept = kept or {}
        self.trouble = trouble
        self.asked: list[str] = []

    def get_password(self, service: str, name: str) -> str | None:
        self.asked.append(name)
        if self.trouble:
            raise self.trouble
        assert service == "sidecar"
        return self.kept.get(name)

    def set_password(self, service: str, name: str, key: str) -> None:
        if self.trouble:
            raise self.trouble
        self.kept[name] = key

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[name]


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> FakeKeyring:
    """In place of the tester's own."""
    fake = FakeKeyring()
    monkeypatch.setitem(sys.modules, "keyring", fake)
    return fake


def connections(environ: dict[str, str] | None = None, /, **tables: dict[str, Any]) -> Endpoints:
    layers: dict[str, Any] = {name: (key.default, "default") for name, key in keys.KEYS.items()}
    for provider, table in tables.items():
        for key, value in table.items():
            layers[f"providers.{provider}.{key}"] = (value, "user")
    return Endpoints(lambda: Settings(layers, ""), environ or {})


def found(environ: dict[str, str] | None = None, name: str = "openai", /, **tables: Any) -> Endpoint:
    connection = connections(environ, **tables).get(name)
    assert connection is not None
    return connection


def test_the_providers_without_configuration_come_first() -> None:
    assert connections(lmstudio={"type": "openai"}, ollama={"retries": 1}).names() == [
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "ollama",
        "local",
        "lmstudio",
    ]


@pytest.mark.parametrize(
    ("name", "url", "variable"),
    [
        ("openai", OPENAI, "OPENAI_API_KEY"),
        ("openai-responses", OPENAI, "OPENAI_API_KEY"),
        ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com", "GOOGLE_API_KEY"),
        ("ollama", "http://127.0.0.1:11434", "OLLAMA_API_KEY"),
    ],
)
def test_a_key_in_the_environment_is_enough(name: str, url: str, variable: str) -> None:
    assert found({variable: f" {KEY}\n"}, name) == Endpoint(
        name=name,
        type=name,  # type: ignore[arg-type]
        base_url=url,
        official=True,
        key=KEY,
        key_source="environment",
        key_env=variable,
    )


def test_local_has_neither_address_nor_key() -> None:
    assert found({}, "local") == Endpoint(name="local", type="local", base_url="", official=True)


def test_an_unknown_provider_is_none() -> None:
    assert connections().get("nobody") is None


def test_geminis_own_variable_goes_before_googles() -> None:
    connection = found({"GEMINI_API_KEY": KEY, "GOOGLE_API_KEY": OTHER}, "gemini")

    assert (connection.key, connection.key_env) == (KEY, "GEMINI_API_KEY")


def test_the_environment_moves_address_and_key_together() -> None:
    connection = found({"OPENAI_BASE_URL": "http://proxy:1/v1/", "OPENAI_API_KEY": KEY})

    assert (connection.base_url, connection.official, connection.key) == ("http://proxy:1/v1", False, KEY)


@pytest.mark.parametrize("url", [f"http://u:{KEY}@proxy", "proxy:80", "http://"])
async def test_a_broken_address_in_the_environment_is_no_other_address(url: str) -> None:
    there = connections({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY})

    with pytest.raises(ProviderFailed, match="OPENAI_BASE_URL: expected an http or https address") as caught:
        there.get("openai")

    described = await there.describe("openai")
    assert described is not None
    assert (described.ready, described.reason) == (False, caught.value.message)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:99", "http://127.0.0.1:99"),
        (":99", "http://127.0.0.1:99"),
        ("gpu", "http://gpu:11434"),
        ("http://gpu", "http://gpu:80"),
        ("https://gpu/ollama/", "https://gpu:443/ollama"),
        ("http://gpu:8080", "http://gpu:8080"),
        ("[::]:99", "http://[::1]:99"),
        ("::1", "http://[::1]:11434"),
    ],
)
def test_ollamas_host_may_lack_what_is_usual(host: str, url: str) -> None:
    assert found({"OLLAMA_HOST": host}, "ollama").base_url == url


def test_a_vendors_key_does_not_go_to_another_host() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://proxy/v1"}
    connection = found(environ, "vllm", vllm={"type": "openai", "base_url": "http://gpu/v1"})

    assert connection == Endpoint(name="vllm", type="openai", base_url="http://gpu/v1", official=False)


def test_a_table_that_names_the_variable_gets_its_key() -> None:
    table = {"type": "openai", "base_url": "http://gpu/v1", "api_key_env": "OPENAI_API_KEY"}

    assert found({"OPENAI_API_KEY": KEY}, "vllm", vllm=table).key == KEY


def test_a_table_with_the_vendors_own_address_keeps_its_key() -> None:
    connection = found({"OPENAI_API_KEY": KEY}, openai={"base_url": OPENAI + "/"})

    assert (connection.official, connection.key) == (True, KEY)


def test_a_second_account_has_a_name_of_its_own() -> None:
    connection = found(
        {"OPENAI_API_KEY": KEY, "WORK": OTHER}, "work", work={"type": "openai", "api_key_env": "WORK"}
    )

    assert (connection.base_url, connection.key, connection.key_env) == (OPENAI, OTHER, "WORK")


def test_a_table_says_the_rest() -> None:
    table = {
        "headers": {"X-Title": "My app"},
        "timeout": 9.0,
        "retries": 0,
        "models": {"a/b.c:1": {"window": 8, "prices": {"input": 1}}},
    }
    connection = found({}, openai=table)

    assert (connection.headers, connection.timeout, connection.retries) == ({"X-Title": "My app"}, 9.0, 0)
    assert connection.models == {"a/b.c:1": ModelFacts(window=8, prices={"input": 1})}


async def test_each_place_of_a_key_goes_before_the_next(ring: FakeKeyring) -> None:
    environ = {"OPENAI_API_KEY": "sk-environment"}
    table = {"api_key": "sk-configuration"}
    ring.kept["openai"] = "sk-keyring"
    seen = []
    for there in (connections(environ, openai=table), connections({}, openai=table), connections({})):
        connection = await there.connection("openai")
        assert connection is not None
        seen.append((connection.key, connection.key_source))
        await there.configure("openai", api_key="sk-memory")
        connection = there.get("openai")
        assert connection is not None
        assert (connection.key, connection.key_source) == ("sk-memory", "memory")

    assert seen == [
        ("sk-environment", "environment"),
        ("sk-configuration", "configuration"),
        ("sk-keyring", "keyring"),
    ]


async def test_the_keyring_is_asked_once_and_only_without_another_key(ring: FakeKeyring) -> None:
    there = connections({"OPENAI_API_KEY": KEY})

    for name in ("openai", "anthropic", "local", "anthropic"):
        await there.connection(name)
        there.get("gemini")

    assert ring.asked == ["anthropic"]


async def test_a_key_is_kept_in_the_keyring_and_taken_back(ring: FakeKeyring) -> None:
    there = connections()

    await there.configure("openai", api_key=KEY, store="keyring")
    kept = dict(ring.kept)
    connection = there.get("openai")
    await there.configure("openai", api_key=None, store="keyring")
    after = await there.connection("openai")

    assert (kept, ring.kept) == ({"openai": KEY}, {})
    assert connection is not None
    assert after is not None
    assert (connection.key_source, after.key_source) == ("keyring", None)


async def test_a_keyring_that_fails_is_told_by_a_write_and_survived_by_a_read(ring: FakeKeyring) -> None:
    ring.trouble = RuntimeError(f"locked, and by the way {KEY}")
    there = connections()

    with pytest.raises(Failure, match="The keyring cannot be written: RuntimeError: locked") as caught:
        await there.configure("openai", api_key=KEY, store="keyring")
    described = await there.describe("openai")
    await there.describe("anthropic")

    assert (caught.value.name, KEY in caught.value.message) == ("precondition_failed", False)
    assert described is not None
    assert described.reason == (
        "no key: set OPENAI_API_KEY or enter one "
        "(The keyring cannot be read: RuntimeError: locked, and by the way (hidden))"
    )
    assert ring.asked == ["openai"]


async def test_without_the_package_a_write_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyrings, "_is_installed", lambda: False)
    there = connections()

    with pytest.raises(Failure, match=r"pip install 'chat-sidecar\[keyring\]'"):
        await there.configure("openai", api_key=KEY, store="keyring")
    connection = await there.connection("openai")

    assert connection is not None
    assert connection.key is None


async def test_a_keyring_that_hangs_is_given_up(ring: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    release = Event()
    monkeypatch.setattr(keyrings, "PATIENCE_S", 0.05)
    monkeypatch.setattr(ring, "get_password", lambda *_: release.wait(PATIENCE_S) and None)
    try:
        with anyio.fail_after(PATIENCE_S):
            described = await connections().describe("openai")
    finally:
        release.set()

    assert described is not None
    assert "no answer within" in (described.reason or "")


async def test_what_is_absent_stays_and_what_is_none_goes() -> None:
    there = connections({"OPENAI_API_KEY": OTHER})
    seen = []
    await there.configure("openai", api_key=KEY, base_url="http://proxy/v1/")
    seen.append(there.get("openai"))
    await there.configure("openai", base_url=None)
    seen.append(there.get("openai"))
    await there.configure("openai", api_key=None)
    seen.append(there.get("openai"))

    assert [(each.base_url, each.key) for each in seen if each] == [
        ("http://proxy/v1", KEY),
        (OPENAI, KEY),
        (OPENAI, OTHER),
    ]


async def test_an_address_of_the_app_does_not_get_the_vendors_key() -> None:
    there = connections({"OPENAI_API_KEY": KEY})
    await there.configure("openai", base_url="http://proxy/v1")

    connection = there.get("openai")

    assert connection is not None
    assert connection.key is None


@pytest.mark.parametrize(
    "key", ["", " ", KEY + " ", KEY + "\n", KEY + "\x00", KEY + "é", "(set)", "x" * 9000]
)
async def test_what_is_no_key_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(Failure, match="`apiKey`: a key of visible ASCII") as caught:
        await connections().configure("openai", api_key=key)

    assert (caught.value.name, KEY in str(caught.value.details())) == ("invalid_params", False)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "nobody", "api_key": KEY}, "provider"),
        ({"name": "local", "api_key": KEY}, "provider"),
        ({"name": "openai", "base_url": "nowhere"}, "baseUrl"),
        ({"name": "openai", "base_url": ""}, "baseUrl"),
        ({"name": "openai", "api_key": KEY, "base_url": "http://a@b"}, "baseUrl"),
    ],
)
async def test_a_refused_change_changes_nothing(given: dict[str, Any], field: str) -> None:
    there = connections()

    with pytest.raises(Failure) as caught:
        await there.configure(given.pop("name"), **given)

    assert caught.value.params is not None
    assert caught.value.params["field"] == field
    assert there.get("openai") == connections().get("openai")


async def test_only_an_official_host_needs_a_key() -> None:
    there = connections(vllm={"type": "openai", "base_url": "http://gpu/v1"})
    described = [await there.describe(name) for name in ("openai", "ollama", "vllm")]

    assert [(each.needs_key, each.ready) for each in described if each] == [
        (True, False),
        (False, True),
        (False, True),
    ]


async def test_a_variable_that_holds_no_key_is_named() -> None:
    described = await connections({"OPENAI_API_KEY": f"{KEY} # mine"}).describe("openai")

    assert described is not None
    assert (described.ready, described.reason) == (
        False,
        "OPENAI_API_KEY holds characters that no key has",
    )


def test_broken_settings_are_a_failure_that_says_so() -> None:
    def broken() -> Settings:
        raise SettingsError("model", "expected text", path="/config.toml")

    with pytest.raises(Failure, match=r"/config\.toml: `model`: expected text") as caught:
        Endpoints(broken, {}).get("openai")

    assert (caught.value.name, caught.value.action) == ("precondition_failed", "fix_settings")


async def test_every_key_that_was_seen_is_hidden_from_what_is_written(ring: FakeKeyring) -> None:
    ring.kept["gemini"] = "secret-of-the-keyring"
    there = connections(
        {"OPENAI_API_KEY": "secret-of-the-environment"},
        anthropic={"api_key": 'secret-"of"-the-file', "headers": {"X": "secret of a header"}},
    )
    for name in there.names():
        await there.connection(name)
    await there.configure("ollama", api_key="secret/of/the/app")

    text = (
        'a secret-of-the-keyring b secret-of-the-environment c secret-"of"-the-file d secret of a header '
        'e secret-\\"of\\"-the-file f secret/of/the/app g secret%2Fof%2Fthe%2Fapp'
    )
    assert redact.redact_text(text) == " ".join(f"{letter} (hidden)" for letter in "abcdefg")


def test_a_connection_does_not_show_its_key() -> None:
    assert KEY not in repr(found({"OPENAI_API_KEY": KEY}))
