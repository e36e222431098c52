"""One tool call of a chat: asked for, refused, carried out, written, and its output kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sidecar.chat.sessions.session import Session
from sidecar.chat.tool_calls.run_tool_call import INLINE_CHARACTERS
from sidecar.model.content import Item
from sidecar.providers.base import Completion, ToolCall
from tests.unit.chat.memory import ScriptedApp, events, finish, open_session, send, turns
from tests.unit.engines.sinks import ScriptedReplies

WRITE = {"path": "note.txt", "content": "new\n"}


async def run_call(session: Session) -> Item:
    """The item of the one call that the model makes."""
    await send(session, "go")
    await finish(session)
    (turn,) = await turns(session)
    (item,) = [item for item in turn.items if item.type == "tool"]
    return item


def calling(name: str, **input: Any) -> ScriptedReplies:
    return ScriptedReplies([ToolCall("c", name, input), Completion("tool_calls")], [Completion("end_turn")])


async def test_an_edit_that_is_allowed_is_written_and_entered_into_the_ledger(tmp_path: Path) -> None:
    app = ScriptedApp("allow_once")
    async with open_session(calling("write_file", **WRITE), project=tmp_path, app=app) as session:
        item = await run_call(session)
        (entry,) = await session.store.patches.all(session.chat.id)

    assert (tmp_path / "note.txt").read_text() == "new\n"
    assert (item.status, entry.patch.file_path, entry.patch.item_id) == ("completed", "note.txt", item.id)
    assert [(asked["kind"], asked["subject"]) for asked in app.asked] == [("edit", "note.txt")]


@pytest.mark.parametrize(
    ("decision", "code"), [("deny_once", "user_denied"), ("deny_always", "user_denied"), (None, "cannot_ask")]
)
async def test_an_edit_that_is_denied_is_not_written(tmp_path: Path, decision: str | None, code: str) -> None:
    provider = calling("write_file", **WRITE)
    async with open_session(provider, project=tmp_path, app=ScriptedApp(decision)) as session:
        item = await run_call(session)
        ledger = await session.store.patches.all(session.chat.id)

    assert (item.status, (item.not_run or {})["code"]) == ("denied", code)
    assert (os.listdir(tmp_path), ledger) == ([], [])


async def test_a_chat_that_only_reads_asks_nobody_about_an_edit(tmp_path: Path) -> None:
    app = ScriptedApp("allow_once")
    provider = calling("write_file", **WRITE)
    async with open_session(provider, project=tmp_path, app=app, mode="read-only") as session:
        item = await run_call(session)

    assert (item.status, (item.not_run or {})["code"], app.asked) == ("denied", "read_only", [])


async def test_reading_a_file_of_the_project_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("what it says\n")
    app = ScriptedApp("deny_once")
    async with open_session(calling("read_file", path="note.txt"), project=tmp_path, app=app) as session:
        item = await run_call(session)

    assert (item.status, app.asked) == ("completed", [])
    assert "what it says" in item.output_text


async def test_what_is_about_to_be_written_is_journalled_before_it_is_written(tmp_path: Path) -> None:
    app = ScriptedApp("allow_once")
    async with open_session(calling("write_file", **WRITE), project=tmp_path, app=app) as session:
        await run_call(session)
        types = (
            "permission.requested",
            "permission.resolved",
            "tool.updated",
            "patch.recorded",
            "tool.ended",
        )
        found = [type for type, _ in await events(session, *types)]

    assert found == list(types)


async def test_an_output_that_is_too_long_is_kept_whole_and_sent_in_part(tmp_path: Path) -> None:
    command = f"printf 'x%.0s' $(seq {2 * INLINE_CHARACTERS})"
    app = ScriptedApp("allow_once")
    async with open_session(calling("run_command", command=command), project=tmp_path, app=app) as session:
        item = await run_call(session)
        _, data = await session.store.blobs.read(item.output_ref or "", 0, 1 << 20)

    assert (item.output or {})["truncated"] is True
    assert len(item.output_text) < INLINE_CHARACTERS + 100
    assert b"x" * 2 * INLINE_CHARACTERS in data
