"""A chat's files, patches, branches and commands: each is one request of the contract, typed on the way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from sidecar_client import Chat
from sidecar_protocol.messages import FileRestore, OpenFile

from .fake import FakeSidecar, Json, connected

CHAT = {"sessionId": FakeSidecar.session, "chatId": "tab-7"}
KEY = {"sessionId": FakeSidecar.session}
FILE: Json = {
    "path": "src/engine.py",
    "pinned": True,
    "lastViewedAt": 2,
    "addedAt": 1,
    "openedBy": "user",
    "state": "ok",
}
PATCH: Json = {
    "id": "c-1",
    "turnId": "t1",
    "filePath": "src/engine.py",
    "ts": 1,
    "toolName": "edit_file",
    "summary": "-1, +1 lines",
    "added": 1,
    "removed": 1,
    "status": "applied",
    "kind": "modify",
}
RESTORE: Json = {"path": "src/engine.py", "kind": "modify", "status": "restored"}
FILES: Json = {**CHAT, "files": [FILE], "seq": 4}
CHANGED: Json = {**CHAT, "items": [PATCH], "fileChanges": [RESTORE], "seq": 5}


@pytest.mark.parametrize(
    ("ask", "method", "params", "result"),
    [
        (lambda chat: chat.open_files(), "files/list", {}, FILES),
        (
            lambda chat: chat.open_file("src/engine.py", pinned=True),
            "files/open",
            {"path": "src/engine.py", "pinned": True},
            FILES,
        ),
        (lambda chat: chat.open_file(glob="src/*.py"), "files/open", {"glob": "src/*.py"}, FILES),
        (lambda chat: chat.close_file("src/engine.py"), "files/close", {"path": "src/engine.py"}, FILES),
        (lambda chat: chat.pin_file("src/engine.py"), "files/pin", {"path": "src/engine.py"}, FILES),
        (lambda chat: chat.pin_file("src/engine.py", False), "files/unpin", {"path": "src/engine.py"}, FILES),
        (
            lambda chat: chat.patches(turn_id="t1"),
            "patches/list",
            {"turnId": "t1"},
            {**CHAT, "items": [PATCH]},
        ),
        (lambda chat: chat.diffs("c-1"), "patches/show", {"id": "c-1"}, {**CHAT, "items": [PATCH]}),
        (
            lambda chat: chat.revert(turn_id="t1", dry_run=True),
            "patches/revert",
            {"turnId": "t1", "dryRun": True},
            CHANGED,
        ),
        (
            lambda chat: chat.rewind("t1", files="restore"),
            "chat/rewind",
            {"before": {"turnId": "t1"}, "files": "restore"},
            {**CHAT, "head": None, "hidden": ["t1"], "shown": [], "fileChanges": [RESTORE]},
        ),
        (
            lambda chat: chat.rewind(to="t1"),
            "chat/rewind",
            {"to": {"turnId": "t1"}},
            {**CHAT, "head": "t1", "hidden": [], "shown": ["t1"], "fileChanges": []},
        ),
    ],
)
async def test_a_request_says_the_chat_and_what_was_given(
    ask: Callable[[Chat], Awaitable[Any]], method: str, params: Json, result: Json
) -> None:
    fake = FakeSidecar()
    fake.results[method] = result
    async with connected(fake) as app:
        await ask(await app.chat("tab-7"))
    assert fake.calls(method) == [{**KEY, **params}]


async def test_the_results_are_typed() -> None:
    fake = FakeSidecar()
    fake.results |= {"files/list": FILES, "patches/revert": CHANGED}
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        (file,) = await chat.open_files()
        reverted = await chat.revert("c-1")
    assert file == OpenFile(
        path="src/engine.py", pinned=True, last_viewed_at=2, added_at=1, opened_by="user", state="ok"
    )
    assert reverted.file_changes == [FileRestore(path="src/engine.py", kind="modify", status="restored")]


async def test_a_fork_is_a_chat_of_its_own_that_can_be_prompted() -> None:
    fake = FakeSidecar()
    async with connected(fake) as app:
        first = await app.chat("tab-7")
        other = "sc-tab-8-0000000000000000"
        fake.results["chat/fork"] = {
            **fake.opened("created", {"kind": "none"}),
            "sessionId": other,
            "chatId": "tab-8",
        }
        fork = await first.fork("tab-8", at="t1")
        answer = fork.prompt("Go on")
        fake.session = other
        assert (await anext(answer)).session_id == other
        fake.end()
        assert [event.type async for event in answer] == ["turn.started", "turn.ended"]
    assert (fork.chat_id, fork.status, fork is first) == ("tab-8", "created", False)
    assert fake.calls("chat/fork") == [{**KEY, "newChatId": "tab-8", "at": {"turnId": "t1"}}]


async def test_a_command_is_answered_by_one_event() -> None:
    fake = FakeSidecar()
    fake.commands = {"/open src/*.py": "Opened 2 files."}
    async with connected(fake) as app:
        answer = (await app.chat("tab-7")).prompt("/open src/*.py")
        seen = [(event.type, event.text) async for event in answer]
    assert seen == [("command.result", "Opened 2 files.")]
    assert answer.ended is not None
    assert answer.ended.data["data"] == {"command": "/open src/*.py"}


async def test_the_text_of_a_command_is_its_markdown() -> None:
    fake = FakeSidecar()
    fake.commands = {"/help": "**/open** opens."}
    async with connected(fake) as app:
        assert await (await app.chat("tab-7")).prompt("/help").text() == "**/open** opens."


async def test_leaving_a_command_that_has_not_answered_does_not_cancel_the_turn_beside_it() -> None:
    fake = FakeSidecar()
    fake.commands = {"/compact": None}
    async with connected(fake) as app:
        chat = await app.chat("tab-7")
        async with chat.prompt("Hello") as turn:
            await anext(turn)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(chat.prompt("/compact").text)
                await fake.asked_for("prompt/send", 2)
                tasks.cancel_scope.cancel()
            assert fake.calls("turn/cancel") == []
            fake.end()
            assert [event.type async for event in turn][-1] == "turn.ended"
