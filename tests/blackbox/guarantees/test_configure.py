"""Section 6: the configuration of a chat, its names, and which layer wins."""

from __future__ import annotations

import pytest

from tests.support.reading import last_messages
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


def test_a_key_is_set_shown_and_cleared_with_null(sidecar: Sidecar) -> None:
    before = sidecar.call("chat/open", chatId="c")["config"]
    after = sidecar.call("chat/configure", chatId="c", set={"instructions": "Be brief.", "meta": {"a": [1]}})
    assert after["config"] == before | {"instructions": "Be brief.", "meta": {"a": [1]}}
    assert (
        sidecar.call("chat/configure", chatId="c", set={"instructions": None, "meta": None})["config"]
        == before
    )


def test_an_unknown_key_is_refused_with_the_nearest_name(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    for refusal in (
        sidecar.refused("chat/configure", chatId="c", set={"instuctions": "x", "effort": "low"}),
        sidecar.refused("chat/open", chatId="d", config={"instuctions": "x"}),
    ):
        assert refusal.code == -32602
        assert "instuctions" in str(refusal)
        assert "instructions" in str(refusal)
    assert sidecar.call("chat/open", chatId="c")["config"].get("effort") is None
    assert sidecar.refused("chat/history", chatId="d").code == -32002


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "wrong", [{"mode": "wild"}, {"maxSteps": "many"}, {"exclude": "x"}, {"meta": "x" * 17000}], ids=str
)
def test_a_wrong_value_is_refused_by_name(sidecar: Sidecar, wrong: dict[str, object]) -> None:
    sidecar.call("chat/open", chatId="c")
    refusal = sidecar.refused("chat/configure", chatId="c", set=wrong)
    assert refusal.code == -32602
    assert next(iter(wrong)) in str(refusal)


def test_another_model_keeps_the_thread(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sidecar.run("hello", chatId="c")
    sidecar.call("chat/configure", chatId="c", set={"model": "echo:"})
    sidecar.run("hello", chatId="c")
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert last_messages(turns) == ["Answer.", "hello"]


def test_what_a_chat_is_given_at_opening_is_kept_over_a_restart(spawn: Spawner) -> None:
    first = spawn(model=write_script(spawn.folder))
    first.call("chat/open", chatId="c", config={"model": "echo:"})
    first.kill()
    second = spawn(model=write_script(spawn.folder))
    assert second.call("chat/open", chatId="c")["config"]["model"] == "echo:"
    second.run("hello", chatId="c")
    assert last_messages(second.call("chat/history", chatId="c")["turns"]) == ["hello"]


def test_only_its_own_keys_are_stored_with_a_chat(spawn: Spawner) -> None:
    first = spawn(model="echo:")
    first.call("chat/open", chatId="c", config={"effort": "low"})
    first.kill()
    model = write_script(spawn.folder)
    config = spawn(model=model).call("chat/open", chatId="c")["config"]
    assert (config["effort"], config["model"]) == ("low", model)


def test_a_change_is_an_event_with_the_whole_configuration(sidecar: Sidecar) -> None:
    session = sidecar.call("chat/open", chatId="c")["sessionId"]
    result = sidecar.call("chat/configure", chatId="c", set={"effort": "high"})
    event = sidecar.wait_event(session, "config.updated")
    assert (event["seq"], event["data"]["config"]) == (result["seq"], result["config"])


def test_meta_is_shown_in_the_list(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c", config={"meta": {"colour": "green"}})
    assert sidecar.call("chat/list")["items"][0]["meta"] == {"colour": "green"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["flag", "environment"])
def test_the_environment_wins_over_a_file_that_is_named(spawn: Spawner, by: str) -> None:
    file = spawn.folder / "config.toml"
    file.write_text('model = "nonsense:x"\nmode = "read-only"\n')
    sidecar = spawn("--config", str(file)) if by == "flag" else spawn(env={"SIDECAR_CONFIG": str(file)})
    config = sidecar.call("chat/open", chatId="c")["config"]
    assert (config["model"], config["mode"]) == ("echo:", "read-only")


def test_an_unknown_key_in_a_file_is_told_with_the_nearest(spawn: Spawner) -> None:
    file = spawn.folder / "config.toml"
    file.write_text("modle = 'echo:'\n")
    sidecar = spawn("--config", str(file), initialize=False)
    answer = sidecar.answer(
        sidecar.ask("initialize", protocol="sidecar", versions=[1], client={"name": "tests"})
    )
    if "result" in answer:
        refusal = sidecar.refused("chat/open", chatId="c")
        assert "modle" in str(refusal)
        assert "model" in str(refusal).replace("modle", "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "engine", ["Copilot", "acp", "acp:nobody", "Native", "native ", "", "nativ", "x" * 300]
)
def test_an_unknown_engine_is_refused_with_the_allowed_ones_and_makes_no_chat(
    sidecar: Sidecar, engine: str
) -> None:
    before = sidecar.call("chat/open", chatId="c")["config"]
    engines = [each["name"] for each in sidecar.call("engines/list")["items"]]
    refusals = [
        sidecar.refused("chat/configure", chatId="c", set={"engine": engine, "effort": "low"}),
        sidecar.refused("chat/open", chatId="d", config={"engine": engine}),
    ]

    assert [(refusal.code, refusal.detail("field")) for refusal in refusals] == [
        (-32602, "set.engine"),
        (-32602, "config.engine"),
    ]
    assert [refusal.detail("expected") for refusal in refusals] == [f"one of {', '.join(engines)}"] * 2
    assert sidecar.call("chat/open", chatId="c")["config"] == before
    assert sidecar.refused("chat/history", chatId="d").code == -32002


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", [7, True, ["native"], {"name": "native"}], ids=str)
def test_an_engine_that_is_no_text_is_refused_by_name(sidecar: Sidecar, engine: object) -> None:
    refusal = sidecar.refused("chat/open", chatId="c", config={"engine": engine})
    assert (refusal.code, refusal.detail("field")) == (-32602, "config.engine")


def test_an_engine_in_the_settings_is_refused_with_the_allowed_ones(sidecar: Sidecar) -> None:
    refusal = sidecar.refused("settings/write", scope="user", set={"engine": "nobody"})
    assert (refusal.code, refusal.detail("field")) == (-32602, "set.engine")
    assert '"native"' in str(refusal)


def test_a_turn_records_the_engine_of_its_chat(sidecar: Sidecar) -> None:
    for chat, config in (("by default", {}), ("by the chat", {"engine": "native"})):
        session = sidecar.call("chat/open", chatId=chat, config=config)["sessionId"]
        turn = sidecar.run("hello", chatId=chat)["turnId"]
        (started,) = sidecar.events(session, "turn.started")
        (found,) = sidecar.call("chat/history", chatId=chat)["turns"]
        assert (started["data"]["engine"], found["id"], found["engine"]) == ("native", turn, "native")
