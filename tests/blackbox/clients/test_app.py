"""The app's end: requests, typed results, routing, and what leaves the `async with` block."""

from __future__ import annotations

import anyio
import pytest
from sidecar_client import RpcError
from sidecar_protocol import messages as m

from .fake import FakeSidecar, connected


async def test_initialize_says_who_watches() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        assert app.server.server.name == "fake"
    (hello,) = fake.calls("initialize")
    assert sorted(hello) == ["capabilities", "client", "processId", "protocol", "versions"]
    assert hello["capabilities"] == {}


async def test_leaving_says_shutdown_and_exit() -> None:
    fake = FakeSidecar()
    async with connected(fake):
        pass
    assert [name for name, _ in fake.asked] == ["initialize", "shutdown", "exit"]


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
async def test_an_exception_of_the_body_leaves_as_it_is(kind: type[BaseException]) -> None:
    with pytest.raises(kind, match="mine"):
        async with connected(FakeSidecar()):
            raise kind("mine")


async def test_an_error_is_raised_with_its_name() -> None:
    fake = FakeSidecar()
    fake.errors["chat/open"] = {"code": -32011, "message": "locked", "data": {"name": "locked"}}
    async with connected(fake) as app:
        with pytest.raises(RpcError) as caught:
            await app.chat("tab-7")
    assert (caught.value.code, caught.value.name) == (-32011, "locked")


async def test_call_reaches_any_method_and_types_what_the_catalog_knows() -> None:
    async with connected(FakeSidecar()) as app:
        known = await app.call("chat/rename", {"chatId": "tab-7", "title": "T"})
        unknown = await app.call("later/method")
    assert (type(known), known.title, unknown) == (m.ChatChanged, "T", {})


async def test_opening_twice_gives_the_same_chat() -> None:
    async with connected(FakeSidecar()) as app:
        assert await app.chat("tab-7") is await app.chat("tab-7")


async def test_title_and_state_follow_the_events() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        events = chat.events()
        await chat.rename("Punch cards")
        fake.emit("chat.state", {"state": "running"})
        assert [(await anext(events)).type for _ in range(2)] == ["chat.renamed", "chat.state"]
    assert (chat.title, chat.state) == ("Punch cards", "running")


async def test_an_error_without_an_id_is_not_answered() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        fake.wire.put({"id": None, "error": {"code": -32700, "message": "Not JSON"}})
        await app.call("rpc.discover")
    assert [name for name, _ in fake.asked] == ["initialize", "rpc.discover", "shutdown", "exit"]


async def test_notifications_of_a_later_version_are_ignored() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        fake.wire.put({"method": "event", "params": {"new": "shape"}})
        fake.wire.put({"method": "aurora", "params": {}})
        events = chat.events()
        fake.emit("chat.painted", {"colour": "green"})
        assert (await anext(events)).type == "chat.painted"


async def test_cancelling_a_request_tells_the_sidecar() -> None:
    fake = FakeSidecar()
    fake.silent = {"models/list"}
    async with connected(fake) as app:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.models)
            await fake.asked_for("models/list")
            tasks.cancel_scope.cancel()
        await fake.asked_for("$/cancelRequest")
