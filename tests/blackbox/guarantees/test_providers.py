"""Which providers are ready: what a settings page gets and may change, and that others are notified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.unfriendly import RefusingServer, refusing_server
from tests.support.wire import Json

KEY = "sk-example-0123456789"
TYPES = ["openai", "openai-responses", "anthropic", "gemini", "ollama", "local"]


@pytest.fixture
def provider() -> Iterator[RefusingServer]:
    with refusing_server() as server:
        yield server


def named(sidecar: Sidecar, name: str) -> Json:
    items: list[Json] = sidecar.call("providers/list")["items"]
    (found,) = (item for item in items if item["name"] == name)
    return found


def test_the_providers_are_listed_without_those_that_only_play(sidecar: Sidecar) -> None:
    assert [item["name"] for item in sidecar.call("providers/list")["items"]] == TYPES


def test_a_provider_without_a_key_says_where_one_would_come_from(sidecar: Sidecar) -> None:
    assert named(sidecar, "anthropic") == {
        "name": "anthropic",
        "type": "anthropic",
        "baseUrl": "https://api.anthropic.com",
        "keyEnv": "ANTHROPIC_API_KEY",
        "needsKey": True,
        "ready": False,
        "reason": "no key: set ANTHROPIC_API_KEY or enter one",
        "code": "no_key",
    }


def test_a_key_in_the_environment_makes_it_ready(spawn: Spawner) -> None:
    found = named(spawn(env={"GOOGLE_API_KEY": KEY}), "gemini")

    assert (found["keySource"], found["keyEnv"], found["ready"]) == ("environment", "GOOGLE_API_KEY", True)


def test_a_given_key_goes_before_the_environments_until_it_is_taken_back(spawn: Spawner) -> None:
    sidecar = spawn(env={"OPENAI_API_KEY": KEY})
    given = sidecar.call("providers/configure", provider="openai", apiKey=KEY + "x")
    taken = sidecar.call("providers/configure", provider="openai", apiKey=None)

    assert (given["keySource"], taken["keySource"]) == ("memory", "environment")


def test_a_key_in_memory_ends_with_the_process(spawn: Spawner) -> None:
    spawn().call("providers/configure", provider="openai", apiKey=KEY)

    assert "keySource" not in named(spawn(), "openai")


def test_an_address_holds_for_the_process_and_leaves_the_key_alone(spawn: Spawner) -> None:
    first = spawn()
    first.call("providers/configure", provider="openai", apiKey=KEY)
    moved = first.call("providers/configure", provider="openai", baseUrl="http://127.0.0.1:9/v1/")
    back = first.call("providers/configure", provider="openai", baseUrl=None)

    assert (moved["baseUrl"], moved["keySource"]) == ("http://127.0.0.1:9/v1", "memory")
    assert back["baseUrl"] == named(spawn(), "openai")["baseUrl"] == "https://api.openai.com/v1"


def test_a_provider_of_the_settings_is_there_at_once(sidecar: Sidecar) -> None:
    change = {"providers.lm.type": "openai", "providers.lm.base_url": "http://127.0.0.1:1234/v1"}
    sidecar.call("settings/write", scope="user", set=change)

    assert named(sidecar, "lm") == {
        "name": "lm",
        "type": "openai",
        "baseUrl": "http://127.0.0.1:1234/v1",
        "needsKey": False,
        "ready": True,
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change",
    [
        ("providers/configure", {"provider": "openai", "apiKey": KEY}),
        ("settings/write", {"scope": "user", "set": {"providers.openai.retries": 1}}),
    ],
    ids=["configure", "write"],
)
def test_the_app_hears_that_the_models_may_have_changed(sidecar: Sidecar, change: tuple[str, Json]) -> None:
    method, params = change
    sidecar.call(method, **params)
    status = {"type": "models", "data": {"provider": "openai"}}

    sidecar.wait_frame(lambda frame: frame.get("method") == "status" and frame["params"] == status)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("providers/configure", {"provider": "opnai", "apiKey": KEY}, "provider"),
        ("providers/configure", {"provider": "echo", "apiKey": KEY}, "provider"),
        ("providers/configure", {"provider": "local", "apiKey": KEY}, "provider"),
        ("providers/configure", {"provider": "openai", "apiKey": ""}, "apiKey"),
        ("providers/configure", {"provider": "openai", "apiKey": "two words"}, "apiKey"),
        ("providers/configure", {"provider": "openai", "baseUrl": "localhost:80"}, "baseUrl"),
        ("providers/test", {"provider": "opnai"}, "provider"),
    ],
)
def test_what_cannot_be_is_refused_by_name(sidecar: Sidecar, method: str, params: Json, field: str) -> None:
    refusal = sidecar.refused(method, **params)

    assert (refusal.code, refusal.detail("params")["field"]) == (-32602, field)


def test_an_unknown_provider_is_answered_with_the_known_ones(sidecar: Sidecar) -> None:
    assert sidecar.refused("providers/test", provider="opnai").detail("params")["known"] == TYPES


def test_a_provider_that_refuses_the_key_is_told_as_such(sidecar: Sidecar, provider: RefusingServer) -> None:
    sidecar.call("providers/configure", provider="openai", apiKey=KEY, baseUrl=f"{provider.url}/v1")
    result = sidecar.call("providers/test", provider="openai")

    assert (result["ok"], result["error"]["code"], result["error"]["data"]["reason"]) == (
        False,
        -32013,
        "bad_key",
    )
    assert KEY in provider.heard[0]


def test_a_provider_without_a_key_is_not_asked(sidecar: Sidecar) -> None:
    result = sidecar.call("providers/test", provider="anthropic")

    assert (result["ok"], result["error"]["data"]["reason"]) == (False, "no_key")


def test_a_projects_file_cannot_send_keys_elsewhere(spawn: Spawner, provider: RefusingServer) -> None:
    project = spawn.folder / "project"
    (project / ".sidecar").mkdir(parents=True)
    (project / ".sidecar/config.toml").write_text(f'[providers.openai]\nbase_url = "{provider.url}/v1"\n')
    sidecar = spawn(model="openai:gpt-5", env={"OPENAI_API_KEY": KEY})
    sidecar.call("project/trust", path=str(project), trusted=True)
    refusal = sidecar.refused("prompt/send", promptId="p", text="Hello", chatId="c", projectPath=str(project))

    assert (refusal.code, "may not set this" in str(refusal)) == (-32010, True)
    assert provider.heard == []


def test_broken_settings_are_told_with_their_file(spawn: Spawner) -> None:
    path = spawn.folder / "home/.config/sidecar/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[providers.x]\n")
    sidecar = spawn()
    for method, params in (
        ("providers/list", {}),
        ("providers/test", {"provider": "openai"}),
        ("providers/configure", {"provider": "openai", "apiKey": KEY}),
        ("models/list", {}),
    ):
        refusal = sidecar.refused(method, **params)
        assert (refusal.code, refusal.data["action"], str(path) in str(refusal)) == (
            -32010,
            "fix_settings",
            True,
        )


def test_what_the_settings_say_of_a_model_is_listed(sidecar: Sidecar, provider: RefusingServer) -> None:
    prices = {"input": 0.5, "output": 2, "cached": 0.05}
    change = {
        "providers.mine.type": "openai",
        "providers.mine.base_url": f"{provider.url}/v1",
        "providers.mine.models": {"a.b/c:1": {"window": 1000, "max_output": 10, "prices": prices}},
    }
    sidecar.call("settings/write", scope="user", set=change)
    (found,) = sidecar.call("models/list", provider="mine")["items"]

    assert (found["id"], found["window"], found["maxOutput"]) == ("mine:a.b/c:1", 1000, 10)
    assert (found["prices"], found["available"]) == (prices, False)


def test_a_provider_that_is_not_ready_says_why_by_a_code(spawn: Spawner) -> None:
    sidecar = spawn(env={"ANTHROPIC_API_KEY": ""})
    listed = sidecar.call("providers/list")["items"]
    codes = {item["name"]: item.get("code") for item in listed}
    assert (codes["anthropic"], codes["ollama"]) == ("no_key", None)
    assert [item["name"] for item in listed if item["ready"] is bool(item.get("code"))] == []
