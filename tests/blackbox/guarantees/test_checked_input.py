"""What cannot work is said when it is given, not when a turn fails: models, projects, prompts, formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json


@pytest.mark.parametrize(
    "model", ["gpt-5", "opnai:gpt-5", "openai:", "openai: ", ":x", "", "nobody:none", "scripted:", "Echo:"]
)
@pytest.mark.parametrize("method", ["chat/configure", "chat/open"])
def test_a_model_that_cannot_exist_is_refused(sidecar: Sidecar, method: str, model: str) -> None:
    sidecar.call("chat/open", chatId="c")
    member = "set" if method == "chat/configure" else "config"
    refusal = sidecar.refused(method, chatId="c", **{member: {"model": model}})
    assert (refusal.code, refusal.detail("field")) == (-32602, f"{member}.model")
    assert f"`{member}.model`: " in str(refusal)
    assert "provider:model" in str(refusal) or "the name of a model" in str(refusal)
    assert sidecar.call("chat/open", chatId="c")["config"]["model"] == "echo:"


@pytest.mark.parametrize("model", ["gpt-5", "openai:", "", "nobody:none"])
@pytest.mark.parametrize("method", ["prompt/send", "turn/retry", "chat/context"])
def test_a_prompt_cannot_choose_a_model_that_cannot_exist(sidecar: Sidecar, method: str, model: str) -> None:
    sidecar.run("one", chatId="c")
    given: Json = {"promptId": "p", "text": "two"}
    if method != "prompt/send":
        given = {"promptId": "p"} if method == "turn/retry" else {"text": "two"}
    refusal = sidecar.refused(method, chatId="c", overrides={"model": model}, **given)
    assert (refusal.code, refusal.detail("field")) == (-32602, "overrides.model")
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 1, "nothing was accepted"


@pytest.mark.parametrize(
    ("config", "field", "allowed"),
    [
        ({"mode": "sometimes"}, "mode", 'one of "accept-edits", "ask", "auto", "read-only" or null'),
        ({"window": "big"}, "window", "an integer or null"),
        (
            {"gates": {"openFiles": "on"}},
            "gates.openFiles",
            'one of "always", "auto", "never"',
        ),
        ({"gates": {"openFile": "auto"}}, "gates.openFile", "did you mean `openFiles`?"),
        ({"mod": "ask"}, "mod", "did you mean `mode` or `model`?"),
        ({"exclude": ["gitDif"]}, "exclude[0]", "did you mean `gitDiff`?"),
    ],
)
@pytest.mark.parametrize("method", ["chat/configure", "chat/open"])
def test_a_wrong_key_is_named_as_it_was_sent_with_what_is_allowed(
    sidecar: Sidecar, method: str, config: Json, field: str, allowed: str
) -> None:
    sidecar.call("chat/open", chatId="c")
    member = "set" if method == "chat/configure" else "config"
    refusal = sidecar.refused(method, chatId="c", **{member: config})
    assert (refusal.code, refusal.detail("field")) == (-32602, f"{member}.{field}")
    said = refusal.args[0]
    assert f"`{member}.{field}`" in said
    assert allowed in said
    assert "set." not in said or member == "set"


def test_a_misspelled_provider_gets_the_nearest(sidecar: Sidecar) -> None:
    refusal = sidecar.refused("chat/open", chatId="c", config={"model": "opnai:gpt-5"})
    assert "did you mean `openai:gpt-5`?" in str(refusal)


@pytest.mark.parametrize("model", ["echo:", "openai:gpt-5", "scripted:/nowhere.json", "local:some", "auto"])
def test_a_model_that_may_exist_is_taken(sidecar: Sidecar, model: str) -> None:
    sidecar.call("chat/open", chatId="c")
    assert sidecar.call("chat/configure", chatId="c", set={"model": model})["config"]["model"] == model


@pytest.mark.parametrize(
    "prompt",
    [
        {"text": ""},
        {"content": []},
        {"content": [{"type": "text", "text": ""}]},
        {"content": [{"type": "text", "text": ""}, {"type": "text"}]},
        {"text": " \n\t"},
        {"text": "\u3000\u00a0"},
        {"content": [{"type": "text", "text": " "}, {"type": "text", "text": "\n"}]},
    ],
)
@pytest.mark.parametrize("delivery", ["queue", "steer", "interrupt"])
def test_an_empty_prompt_is_refused(sidecar: Sidecar, prompt: Json, delivery: str) -> None:
    refusal = sidecar.refused("prompt/send", chatId="c", promptId="p", delivery=delivery, **prompt)
    assert (refusal.code, refusal.detail("field")) == (-32602, next(iter(prompt)))
    assert sidecar.run("not empty", chatId="c", prompt="p")["data"]["reason"] == "end_turn"


def test_a_waiting_prompt_cannot_be_emptied(spawn: Spawner) -> None:
    (spawn.folder / "script.json").write_text(json.dumps([{"steps": [{"hang": True}]}]))
    sidecar = spawn(model=f"scripted:{spawn.folder}/script.json")
    sidecar.say("first", chatId="c")
    sidecar.say("second", chatId="c", prompt="p")
    empty: Json = {"content": [{"type": "text", "text": ""}], "revision": 1}
    assert sidecar.refused("prompt/edit", chatId="c", promptId="p", **empty).code == -32602
    (waiting,) = sidecar.call("prompt/list", chatId="c")["queue"]["items"]
    assert waiting["content"][0]["text"] == "second"


def test_a_prompt_of_an_attachment_alone_is_taken(sidecar: Sidecar) -> None:
    content = [{"type": "resource", "uri": "file:///loom.txt", "text": "A thread"}]
    sent = sidecar.call("prompt/send", chatId="c", promptId="p", content=content)
    assert sent["disposition"] == "started"


@pytest.mark.parametrize(
    ("name", "problem"), [("gone", "missing"), ("file", "not_a_folder"), ("folder", None)]
)
def test_a_project_that_is_not_there_is_said_at_open(
    sidecar: Sidecar, tmp_path: Path, name: str, problem: str | None
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    opened = sidecar.call("chat/open", chatId="c", projectPath=str(tmp_path / name))
    assert opened.get("projectProblem") == problem
    again = sidecar.call("chat/open", chatId="c")
    assert again.get("projectProblem") == problem


@pytest.mark.parametrize("quick", [True, False])
def test_unknown_members_of_the_client_are_ignored(spawn: Spawner, quick: bool) -> None:
    sidecar = spawn(initialize=False)
    client = {"name": "app", "version": "1", "title": "My App", "os": {"name": "linux"}}
    more: Json = {} if quick else {"tools": []}
    found = sidecar.call("initialize", protocol="sidecar", versions=[1], client=client, **more)
    assert found["version"] == 1


@pytest.mark.parametrize("unknown", [{"clientInfo": {}}, {"capabilities": {"voice": True}}])
def test_unknown_members_elsewhere_are_refused(spawn: Spawner, unknown: Json) -> None:
    params: dict[str, Any] = {"protocol": "sidecar", "versions": [1], "client": {"name": "app"}, **unknown}
    assert spawn(initialize=False).refused("initialize", **params).code == -32602


def test_an_import_takes_the_format_of_the_export(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="c")
    data = sidecar.call("chat/export", chatId="c", format="jsonl")["data"]
    assert sidecar.call("chat/import", chatId="d", data=data, format="jsonl")["turns"] == 1
    refusal = sidecar.refused("chat/import", chatId="e", data=data, format="markdown")
    assert (refusal.code, refusal.detail("field")) == (-32602, "format")


def check(sidecar: Sidecar) -> Json:
    return next(check for check in sidecar.call("doctor/run")["checks"] if check["name"] == "model")


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("echo:", "ok", "model"),
        ("nonsense:none", "fail", "model_unknown"),
        ("gpt-5", "fail", "model_unknown"),
        ("scripted:/nowhere.json", "fail", "model_unknown"),
        ("local:/nowhere.gguf", "fail", "model_unknown"),
        ("local:/etc/passwd", "fail", "model_unknown"),
        ("local:smollm2", "fail", "model_unknown"),
        ("anthropic:claude", "fail", "model_unready"),
        ("", "fail", "model_none"),
    ],
)
def test_the_doctor_says_whether_anybody_can_answer(
    spawn: Spawner, model: str, status: str, code: str
) -> None:
    sidecar = spawn(model=model, env={"OLLAMA_HOST": "http://127.0.0.1:9"})
    found = check(sidecar)
    assert (found["status"], found["code"]) == (status, code)
    assert bool(found.get("action")) == (status != "ok")
    if status == "fail":
        assert sidecar.call("doctor/run")["status"] == "fail"
