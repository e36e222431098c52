"""The life of a connection: initialize, ping, discover, cancellation of a request, shutdown and exit."""

from __future__ import annotations

import pytest

from tests.support.scripts import write_script
from tests.support.sidecar import EXIT_WITHIN, Sidecar
from tests.support.spawner import Spawner


def test_initialize_agrees_on_version_1_and_tells_its_limits(spawn: Spawner) -> None:
    result = spawn(initialize=False).initialize()
    assert result["version"] == 1
    assert result["limits"]["maxFrameBytes"] == 32 * 1024 * 1024
    assert result["limits"]["maxQueuedPrompts"] == 256
    assert result["limits"]["maxChatIdBytes"] == 512


def test_initialize_is_answered_before_the_database_is_opened(spawn: Spawner) -> None:
    spawn.data_dir.write_text("a file where the folder should be")
    sidecar = spawn(initialize=False)
    assert sidecar.initialize()["version"] == 1
    assert sidecar.refused("chat/open", chatId="c").code == -32015


def test_ping_and_discover_are_answered_before_initialize(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    ping = sidecar.call("ping")
    assert ping["uptimeMs"] >= 0
    document = sidecar.call("rpc.discover")
    assert document["openrpc"].startswith("1.")
    assert {"initialize", "chat/open", "prompt/send"} <= {method["name"] for method in document["methods"]}
    assert sidecar.initialize()["instanceId"] == ping["instanceId"]


def test_anything_else_before_initialize_is_refused(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    for method, params in (
        ("chat/open", {"chatId": "c"}),
        ("chat/list", {}),
        ("shutdown", {}),
        ("models/list", {}),
    ):
        assert sidecar.refused(method, **params).code == -32005
    assert sidecar.initialize()["version"] == 1


def test_initializing_twice_is_refused(sidecar: Sidecar) -> None:
    assert (
        sidecar.refused("initialize", protocol="sidecar", versions=[1], client={"name": "x"}).code == -32006
    )


def test_an_unsupported_version_is_refused_with_those_supported(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    refusal = sidecar.refused("initialize", protocol="sidecar", versions=[99], client={"name": "x"})
    assert refusal.code == -32022
    assert 1 in refusal.detail("supported")
    assert sidecar.initialize(versions=[99, 1])["version"] == 1


def test_a_wrong_initialize_can_be_mended(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    assert sidecar.refused("initialize", protocol="other", versions=[1], client={"name": "x"}).code == -32602
    assert sidecar.refused("initialize", protocol="sidecar", versions=[1]).code == -32602
    assert sidecar.initialize()["version"] == 1


def test_every_request_sent_before_the_program_is_up_is_answered_in_its_turn(spawn: Spawner) -> None:
    sidecar = spawn(initialize=False)
    first = sidecar.ask("initialize", protocol="sidecar", versions=[1], client={"name": "x"})
    rest = [sidecar.ask("chat/open", chatId=f"c{n}") for n in range(5)]
    sent = sidecar.ask("prompt/send", chatId="c0", promptId="p", text="hello")
    assert sidecar.result(first)["version"] == 1
    assert [sidecar.result(id)["status"] for id in rest] == ["created"] * 5
    assert sidecar.result(sent)["disposition"] == "started"


def test_an_unknown_method_is_named(sidecar: Sidecar) -> None:
    refusal = sidecar.refused("chat/opne")
    assert refusal.code == -32601
    assert "chat/opne" in str(refusal)


def test_an_unknown_parameter_is_named(sidecar: Sidecar) -> None:
    refusal = sidecar.refused("chat/open", chatID="c")
    assert refusal.code == -32602
    assert "chatID" in str(refusal)


def test_an_id_in_use_cannot_be_used_again(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.referee.lenient = True
    message = {"jsonrpc": "2.0", "id": "same", "method": "chat/open", "params": {"chatId": "c"}}
    for _ in range(2):
        sidecar.send(message)
    sidecar.wait_until(lambda: len(sidecar.answers("same")) == 2, 5, "second answer")
    codes = [answer.get("error", {}).get("code") for answer in sidecar.answers("same")]
    assert None in codes
    assert set(codes) <= {None, -32600}


def test_a_cancelled_request_answers_once(spawn: Spawner) -> None:
    sidecar = spawn()
    path = spawn.folder / "many.jsonl"
    path.write_text('{"role":"user","text":"x"}\n{"role":"assistant","text":"y"}\n' * 20_000)
    id = sidecar.ask("chat/import", chatId="c", path=str(path))
    sidecar.notify("$/cancelRequest", id=id)
    answer = sidecar.answer(id)
    exists = bool(sidecar.call("chat/list")["items"])
    assert answer["error"]["code"] == -32800 if "error" in answer else exists
    assert exists == ("result" in answer)


def test_cancelling_nothing_is_silent(sidecar: Sidecar) -> None:
    for id in (999, "ghost"):
        sidecar.notify("$/cancelRequest", id=id)
    sidecar.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": None}})
    assert sidecar.call("ping")
    assert not sidecar.answers(None)


def test_a_commit_is_not_undone_by_a_cancelled_request(sidecar: Sidecar) -> None:
    sidecar.run("warm", chatId="c")
    for number in range(40):
        id = sidecar.ask("prompt/send", chatId="c", promptId=f"p{number}", text="hello")
        for _ in range(number % 8):  # so that the cancel comes earlier or later on the way to the commit
            sidecar.call("ping")
        sidecar.notify("$/cancelRequest", id=id)
        answer = sidecar.answer(id)
        again = sidecar.say("hello", chatId="c", prompt=f"p{number}")
        assert (again["disposition"] == "duplicate") is ("result" in answer), number
        sidecar.wait_turn(again["sessionId"], again["turnId"])


def test_ping_counts_the_requests_under_way(sidecar: Sidecar) -> None:
    assert sidecar.call("ping")["inflight"] in (0, 1)


def test_shutdown_tells_the_state_of_every_chat_and_exit_leaves(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    (chat,) = sidecar.call("shutdown")["chats"]
    assert (chat["sessionId"], chat["chatId"]) == (sent["sessionId"], "c")
    assert sidecar.refused("chat/open", chatId="d").code == -32016
    sidecar.notify("exit")
    assert sidecar.wait(EXIT_WITHIN) == 0


def test_exit_alone_leaves_with_code_0(sidecar: Sidecar) -> None:
    sidecar.notify("exit")
    assert sidecar.wait(EXIT_WITHIN) == 0


def test_a_grace_lets_a_running_turn_finish(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("slow", chatId="c")
    sidecar.call("shutdown", graceMs=10_000)
    sidecar.notify("exit")
    sidecar.wait()
    turn = spawn().call("chat/open", chatId="c")["turns"][-1]
    assert (turn["id"], turn["status"]) == (sent["turnId"], "completed")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_replies_use_the_framing_of_the_requests(spawn: Spawner, framing: str) -> None:
    sidecar = spawn(framing=framing)
    assert sidecar.run("ünï words", chatId="c")["data"]["reason"] == "end_turn"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_framing_can_be_demanded(spawn: Spawner, framing: str) -> None:
    assert spawn("--framing", framing, framing=framing).call("ping")
