"""Which model answers when nobody has chosen, and what a picker gets of the models that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, Model, in_thread, unused_port
from sidecar.fake_provider.base import Style
from tests.support.processes import Stopwatch
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.unit.local.conftest import MakeGguf, make_gguf  # noqa: F401 - a fixture is found by its name

Json = dict[str, Any]

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def alone(**env: str) -> dict[str, str]:
    """No Ollama, and a network that leads nowhere: a proxy that nobody is."""
    nowhere = f"http://127.0.0.1:{unused_port()}"
    return {"OLLAMA_HOST": nowhere, "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere, **env}


def listed(sidecar: Sidecar, **params: str) -> dict[str, Json]:
    return {item["id"]: item for item in sidecar.call("models/list", **params)["items"]}


def default(sidecar: Sidecar) -> str | None:
    marked = [id for id, item in listed(sidecar).items() if item["default"]]
    assert len(marked) < 2
    return marked[0] if marked else None


def once(spawn: Spawner, *providers: str) -> str:
    """A configuration that tries nothing twice."""
    config = spawn.folder / "once.toml"
    config.write_text("".join(f"[providers.{name}]\nretries = 0\n" for name in providers))
    return str(config)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("held", "chosen"),
    [
        (["ANTHROPIC_API_KEY"], "anthropic:claude-"),
        (["OPENAI_API_KEY"], "openai-responses:gpt-"),
        (["GEMINI_API_KEY"], "gemini:gemini-"),
        (["GOOGLE_API_KEY"], "gemini:gemini-"),
        (["GEMINI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic:"),
        (["GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "openai-responses:"),
    ],
)
def test_a_key_in_the_environment_decides(held: list[str], chosen: str, spawn: Spawner) -> None:
    sidecar = spawn(model="", env=alone(**dict.fromkeys(held, "sk-0123456789abcdef")))
    assert str(default(sidecar)).startswith(chosen)


def test_what_is_marked_as_default_is_what_answers(spawn: Spawner) -> None:
    env = alone(ANTHROPIC_API_KEY="sk-0123456789abcdef")
    sidecar = spawn("--config", once(spawn, "anthropic"), model="", env=env)
    ended = sidecar.run("hello", chatId="c")
    (started,) = sidecar.events(ended["sessionId"], "turn.started")

    assert started["data"]["model"] == default(sidecar)
    assert ended["data"]["error"]["data"]["reason"] == "offline"


def test_a_running_ollama_is_chosen(fake: FakeProvider, spawn: Spawner) -> None:
    sidecar = spawn(model="", env=alone(OLLAMA_HOST=fake.url))
    ended = sidecar.run("[[say=I am here]]", chatId="c")["data"]

    assert ended["reason"] == "end_turn"
    assert default(sidecar) == "ollama:fake-1:latest"


def test_a_model_that_only_embeds_is_not_chosen(spawn: Spawner) -> None:
    models = [Model("fake-embed-text"), Model("fake-chat")]
    with in_thread(models=models) as fake:
        assert default(spawn(model="", env=alone(OLLAMA_HOST=fake.url))) == "ollama:fake-chat:latest"


def test_a_key_goes_before_a_running_ollama(fake: FakeProvider, spawn: Spawner) -> None:
    env = alone(OLLAMA_HOST=fake.url, GEMINI_API_KEY="AIza0123456789")
    assert str(default(spawn(model="", env=env))).startswith("gemini:")


def test_a_fetched_model_is_chosen(spawn: Spawner, make_gguf: MakeGguf) -> None:  # noqa: F811
    pytest.importorskip("xllamacpp")
    folder = spawn.data_dir / "models"
    folder.mkdir(parents=True)
    make_gguf("mine").rename(folder / "mine.gguf")
    assert default(spawn(model="", env=alone())) == "local:mine"


def test_with_nothing_set_up_the_error_has_a_line_for_each_way(spawn: Spawner) -> None:
    sidecar = spawn(model="", env=alone())
    error = sidecar.run("hello", chatId="c")["data"]["error"]

    assert (error["code"], error["data"]["reason"]) == (-32013, "no_key")
    assert error["data"]["action"] == "enter_key"
    _, *ways = error["message"].splitlines()
    assert [way.strip().partition(":")[0] for way in ways] == [
        "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY in the environment",
        "start Ollama with a model in it",
        "install a small one",
        "try without one",
    ]
    assert default(sidecar) is None


def test_a_key_that_is_given_later_is_enough(fake: FakeProvider, spawn: Spawner) -> None:
    sidecar = spawn(model="", env=alone())
    assert sidecar.run("hello", chatId="c")["data"]["error"]["data"]["reason"] == "no_key"
    sidecar.call("providers/configure", provider="ollama", baseUrl=fake.url)

    assert sidecar.run("[[say=fine]]", chatId="c")["data"]["reason"] == "end_turn"


def test_an_ollama_that_hangs_does_not_keep_the_prompt_waiting(fake: FakeProvider, spawn: Spawner) -> None:
    fake.fault("hang_before_headers", times=9, path="/api/tags")
    sidecar = spawn(model="", env=alone(OLLAMA_HOST=fake.url))
    clock = Stopwatch(sidecar.pid)
    assert sidecar.run("hello", chatId="c")["data"]["error"]["data"]["reason"] == "no_key"
    assert clock.seconds() < 3


def test_a_server_of_ones_own_is_no_vendor_to_choose_a_model_of(fake: FakeProvider, spawn: Spawner) -> None:
    """Which model another server has is not known; the vendor's default would be a guess."""
    env = alone(OPENAI_BASE_URL=fake.env["OPENAI_BASE_URL"], OPENAI_API_KEY="sk-0123456789abcdef")
    sidecar = spawn(model="", env=env)
    assert sidecar.run("hello", chatId="c")["data"]["error"]["data"]["reason"] == "no_key"
    assert default(sidecar) is None


def test_a_wrong_address_of_one_vendor_does_not_hide_the_key_of_another(spawn: Spawner) -> None:
    env = alone(OPENAI_BASE_URL="not an address", ANTHROPIC_API_KEY="sk-0123456789abcdef")
    assert str(default(spawn(model="", env=env))).startswith("anthropic:")


def test_an_explicit_model_always_wins(fake: FakeProvider, spawn: Spawner) -> None:
    env = alone(OLLAMA_HOST=fake.url, **dict.fromkeys(KEYS, "sk-0123456789abcdef"))
    sidecar = spawn(model="echo:", env=env)
    assert default(sidecar) == "echo:"
    sidecar.call("chat/open", chatId="chosen", config={"model": "ollama:fake-small"})
    for chat, overrides, expected in (
        ("plain", {}, "echo:"),
        ("chosen", {}, "ollama:fake-small"),
        ("chosen", {"model": "ollama:fake-1"}, "ollama:fake-1"),
    ):
        ended = sidecar.run("[[say=fine]]", chatId=chat, overrides=overrides)
        started = sidecar.events(ended["sessionId"], "turn.started")[-1]
        assert (started["data"]["model"], ended["data"]["reason"]) == (expected, "end_turn")


def test_the_data_file_is_told_without_a_key(spawn: Spawner) -> None:
    sidecar = spawn(model="echo:", env=alone())
    for id in ("anthropic:claude-sonnet-5-5", "gemini:gemini-3.8-flash", "openai:gpt-6-sol"):
        found = listed(sidecar)[id]
        assert (found["available"], found["reason"], found["default"]) == (False, "no_key", False)
        assert found["window"] > found["maxOutput"] > 1000
        assert found["prices"]["output"] > found["prices"]["input"] > 0
        assert "image" in found["modalities"]


STYLES: dict[tuple[str, str], Json] = {
    ("openai", "openai"): {"window": None, "maxOutput": None},
    ("openrouter", "openai"): {
        "window": 8192,
        "maxOutput": 2048,
        "modalities": ["text", "image"],
        "prices": {"input": 1.0, "output": 2.0},
    },
    ("vllm", "openai"): {"window": 8192, "maxOutput": None},
    ("openai", "anthropic"): {"window": 8192, "maxOutput": 2048, "modalities": ["text", "image"]},
    ("openai", "gemini"): {"window": 8192, "maxOutput": 2048},
    ("openai", "ollama"): {"window": 8192, "modalities": ["text", "image"]},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("style", "provider"), STYLES)
def test_what_the_provider_tells_of_its_models(style: Style, provider: str, spawn: Spawner) -> None:
    with in_thread(style=style) as fake:
        models = listed(spawn(env=fake.env), provider=provider)
    id = f"{provider}:fake-small" + (":latest" if provider == "ollama" else "")
    expected = STYLES[style, provider]

    assert {key: models[id].get(key) for key in expected} == expected
    assert (models[id]["available"], {each["provider"] for each in models.values()} - {"echo"}) == (
        True,
        {provider},
    )


def test_the_user_goes_before_the_provider_and_that_before_the_file(spawn: Spawner) -> None:
    models = [
        Model("claude-sonnet-5-5", window=777_000, output=7_000),
        Model("claude-opus-5-5", window=555_000),
    ]
    config = spawn.folder / "mine.toml"
    config.write_text(
        "[providers.anthropic]\nmodels = { claude-sonnet-5-5 = { window = 1234 },"
        " mine = { window = 99, max_output = 9, prices = { input = 1.0, output = 2.0 } } }\n"
    )
    with in_thread(models=models) as fake:
        found = listed(spawn("--config", str(config), env=fake.env), provider="anthropic")
    figures = {id: (each["window"], each["maxOutput"]) for id, each in found.items()}

    assert figures["anthropic:claude-sonnet-5-5"] == (1234, 7_000)
    assert figures["anthropic:claude-opus-5-5"][0] == 555_000
    assert figures["anthropic:mine"] == (99, 9)
    assert found["anthropic:mine"]["prices"] == {"input": 1.0, "output": 2.0}
    assert found["anthropic:claude-sonnet-5-5"]["prices"]["input"] > 0, "the file knows what nobody else told"


def test_a_provider_that_is_not_there_does_not_hold_up_the_list(
    fake: FakeProvider, spawn: Spawner, tmp_path: Path
) -> None:
    config = tmp_path / "impatient.toml"
    config.write_text(
        "[providers.openai]\ntimeout = 1\nmodels = { known = { window = 5000 } }\n"
        "[providers.openai-responses]\ntimeout = 1\n[providers.away]\ntype = 'openai'\n"
        f"base_url = 'http://127.0.0.1:{unused_port()}/v1'\nmodels = {{ there = {{ window = 3000 }} }}\n"
    )
    fake.fault("hang_before_headers", times=9, api=None, path="/v1/models")
    env = {**fake.env, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{unused_port()}"}
    sidecar = spawn("--config", str(config), env=env)
    clock = Stopwatch(sidecar.pid)
    found = listed(sidecar)

    assert clock.seconds() < 4
    known = found["openai:known"]
    assert (known["available"], known["reason"], known["window"]) == (False, "timeout", 5000)
    assert (found["away:there"]["available"], found["away:there"]["reason"]) == (False, "offline")
    assert found["gemini:fake-1"]["available"]
