"""Turns that an agent answers, from the prompt to the replay; the agent is a process of its own."""

from __future__ import annotations

import pytest

from tests.blackbox.engines.bench import EngineBench
from tests.support import processes
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def test_an_agent_answers_a_prompt(bench: EngineBench) -> None:
    bench.start()

    ended = bench.run("think Hm", "say Hello ", "say there")
    (turn,) = bench.turns()

    assert (ended["reason"], turn["engine"]) == ("end_turn", "acp:own")
    assert [(item["type"], item.get("text")) for item in turn["items"][1:]] == [
        ("thought", "Hm"),
        ("message", "Hello there"),
    ]
    assert (ended["usage"]["inputTokens"], ended["usage"]["outputTokens"]) == (12, 3)


def test_a_turn_of_an_agent_is_replayed_as_it_was(bench: EngineBench) -> None:
    sidecar = bench.start()
    bench.run("think Hm", "look notes.txt", "plan Write it", "say Hello")
    session = sidecar.call("chat/open", chatId="c")["sessionId"]
    before = sidecar.journal(session)

    sidecar.kill()
    bench.sidecar = bench.spawn()
    bench.sidecar.call("chat/open", chatId="c")

    assert bench.sidecar.journal(session) == before
    assert [item["type"] for item in bench.turns()[-1]["items"]] == [
        "user",
        "thought",
        "tool",
        "plan",
        "message",
    ]


def test_an_unknown_update_is_kept_and_not_fatal(bench: EngineBench) -> None:
    sidecar = bench.start()

    assert bench.said("strange grey", "say on") == "on"
    session = sidecar.call("chat/open", chatId="c")["sessionId"]
    (notice,) = [event["data"] for event in sidecar.journal(session) if event["type"] == "notice"]
    assert notice["code"] == "engine_event"
    assert notice["params"]["event"]["sky"] == "grey"


def test_the_next_prompt_goes_into_the_same_session_of_the_agent(bench: EngineBench) -> None:
    bench.start()
    first = bench.said("session")

    assert bench.said("session") == first
    assert bench.said("said") == "\n---\n".join(["session", "session", "said"])
    assert len(bench.agents()) == 1


@pytest.mark.parametrize("trait", ["", "load", "log-on-stdout", "early-updates"])
def test_a_killed_sidecar_resumes_the_session_of_the_agent(bench: EngineBench, trait: str) -> None:
    sidecar = bench.start(trait)
    first = bench.said("session")
    sidecar.kill()

    bench.start(trait)

    assert bench.said("session") == first
    assert bench.said("said") == "\n---\n".join(["session", "session", "said"])
    assert [item["text"] for turn in bench.turns() for item in turn["items"] if item["type"] == "message"][
        :2
    ] == [
        first,
        first,
    ]


@pytest.mark.parametrize("trait", ["no-resume", "load-fails"])
def test_an_agent_that_cannot_resume_gets_the_history_into_a_new_session(
    bench: EngineBench, trait: str
) -> None:
    sidecar = bench.start(trait)
    first = bench.said("session", "say The loom is in the hall.")
    sidecar.kill()

    bench.start(trait)
    told = bench.said("said")

    assert "The loom is in the hall." in told
    assert told.endswith("\nsaid")
    assert bench.said("session") != first
    sent = [[block["kind"] for block in manifest["blocks"]] for manifest in bench.manifests()]
    assert ["history" in kinds for kinds in sent] == [False, True, False]


def test_the_history_fits_the_window_of_the_agent(bench: EngineBench) -> None:
    sidecar = bench.start("no-resume", window=4000)
    for number in range(12):
        bench.run(f"say turn {number} " + "word " * 600)
    sidecar.kill()

    bench.start("no-resume", window=4000)
    told = bench.said("said")

    assert "turn 11 " in told
    assert "turn 6 " not in told
    assert bench.manifests()[-1]["used"] <= 4000


def test_a_dead_agent_ends_its_turn_with_an_error_and_is_started_again(bench: EngineBench) -> None:
    bench.start()
    session = bench.said("session")

    ended = bench.run("say half", "die out of luck")

    assert ended["reason"] == "error"
    assert ended["error"]["data"]["reason"] == "agent_ended"
    assert "out of luck" in ended["error"]["message"]
    assert bench.said("session") == session
    assert len(bench.agents()) == 2


def test_a_cancelled_turn_keeps_its_text_and_the_agent(bench: EngineBench) -> None:
    sidecar = bench.start()
    sent = sidecar.say("say half\nwait", chatId="c")
    sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")

    sidecar.call("turn/cancel", chatId="c")
    ended = sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert ended["data"]["reason"] == "cancelled"
    assert bench.text(bench.turns()[-1]) == "half"
    assert bench.said("say whole") == "whole"
    assert len(bench.agents()) == 1


def test_an_agent_that_ignores_a_cancel_is_started_again(bench: EngineBench) -> None:
    sidecar = bench.start("ignores-cancel")
    sent = sidecar.say("say half\nwait", chatId="c")
    sidecar.wait_event(sent["sessionId"], lambda event: event["type"] == "message.delta")
    sidecar.call("turn/cancel", chatId="c")
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])

    assert bench.said("say whole") == "whole"
    assert len(bench.agents()) == 2


def test_an_agent_that_stays_at_the_end_of_its_input_is_ended_with_its_children(bench: EngineBench) -> None:
    sidecar = bench.start("stays")
    bench.run("say Hello")
    assert len(bench.living()) == 2

    sidecar.close_stdin()
    sidecar.wait()

    assert processes.poll_until(lambda: not bench.living(), PATIENCE_S)


def test_an_agent_ends_with_a_killed_sidecar(bench: EngineBench) -> None:
    sidecar = bench.start("stays")
    bench.run("say Hello")

    sidecar.kill()

    assert processes.poll_until(lambda: not bench.living(), PATIENCE_S)


def test_an_agent_that_wants_a_login_gets_the_one_of_the_settings(bench: EngineBench) -> None:
    bench.start("auth", login="key")

    assert bench.said("say in") == "in"


@pytest.mark.parametrize(
    ("trait", "reason", "words"),
    [
        ("auth", "no_key", "wants a login"),
        ("no-start", "agent_ended", "the licence has expired"),
        ("root-refused", "agent_refused", "cannot be used with root"),
    ],
)
def test_an_agent_without_a_session_fails_the_turn_and_says_why(
    bench: EngineBench, trait: str, reason: str, words: str
) -> None:
    bench.start(trait)

    error = bench.run("say Hello")["error"]

    assert error["data"]["reason"] == reason
    assert words in error["message"]


def test_an_agent_that_is_not_installed_is_one_error_with_the_command_that_installs_it(
    bench: EngineBench,
) -> None:
    sidecar = bench.start()
    sidecar.call("chat/configure", chatId="c", set={"engine": "acp:qwen-code"})

    error = bench.run("say Hello")["error"]

    assert error["data"]["reason"] == "agent_missing"
    assert "npm install -g @qwen-code/qwen-code" in error["message"]


def test_switching_the_engine_in_the_middle_keeps_the_thread(bench: EngineBench) -> None:
    sidecar = bench.start()
    bench.run("say I am the agent.")
    sidecar.call("chat/configure", chatId="c", set={"engine": "native", "model": "echo:"})
    bench.run("Words of the other engine")
    sidecar.call("chat/configure", chatId="c", set={"engine": "acp:own"})

    told = bench.said("said")

    assert [turn["engine"] for turn in bench.turns()] == ["acp:own", "native", "acp:own"]
    first, second = told.split("\n---\n")
    assert first == "say I am the agent."
    assert second.count("Words of the other engine") == 2
    assert "I am the agent." not in second
    history = [block for block in bench.manifests()[-1]["blocks"] if block["kind"] == "history"]
    assert [block["included"] for block in history] == ["full"]


def test_a_rewound_chat_gets_a_new_session_without_the_hidden_turns(bench: EngineBench) -> None:
    sidecar = bench.start()
    bench.run("say first")
    bench.run("say second")
    turn = bench.turns()[-1]["id"]
    sidecar.call("chat/rewind", chatId="c", before={"turnId": turn})

    told = bench.said("said")

    assert "say first" in told
    assert "second" not in told


def test_the_mode_and_the_model_of_the_settings_are_chosen(bench: EngineBench) -> None:
    bench.start(mode="asking", model="large")

    assert bench.said("choices") == "asking large"


@pytest.mark.parametrize(("key", "words"), [("mode", "free, asking"), ("model", "No such model")])
def test_a_mode_or_model_that_the_agent_does_not_have_fails_the_turn(
    bench: EngineBench, key: str, words: str
) -> None:
    bench.start(**{key: "unknown"})

    error = bench.run("say Hello")["error"]

    assert words in error["message"]
    assert bench.said("say Hello") == ""


def test_engines_list_says_what_is_installed_and_why_not(bench: EngineBench) -> None:
    sidecar = bench.start()

    found = {engine["name"]: engine for engine in sidecar.call("engines/list")["items"]}

    assert (found["native"]["ready"], found["acp:own"]["ready"]) == (True, True)
    assert found["acp:own"]["path"]
    missing = found["acp:qwen-code"]
    assert (missing["installed"], missing["ready"], missing["code"]) == (False, False, "not_installed")
    assert missing["install"] == "npm install -g @qwen-code/qwen-code"
    assert found["copilot"]["code"] == "not_installed"


def test_a_missing_copilot_is_one_error_with_the_commands_that_install_it(bench: EngineBench) -> None:
    sidecar = bench.start()
    sidecar.call("chat/configure", chatId="c", set={"engine": "copilot"})

    error = bench.run("say Hello")["error"]

    assert error["data"]["reason"] == "agent_missing"
    assert "npm install -g @github/copilot" in error["message"]
