"""The handlers of snapshots, over chats in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.model.failures import Refused

from .native import handlers, replies


async def test_the_current_snapshots_are_listed_and_shown_without_a_fence() -> None:
    async with handlers(replies("Blue it is.")) as native:
        await native.run("Paint the shed, and never use lead paint")
        listed = await native.ask("snapshots/list", chatId="c")
        shown = await native.ask("snapshots/show", chatId="c", id="workflow")

    assert [(one.id, one.kind, one.turns) for one in listed.items][:1] == [("workflow", "workflow", 1)]
    assert "Paint the shed" in shown.text
    assert "Paint the shed" in shown.entries[0].text


async def test_a_restored_snapshot_is_journalled_and_opens_no_file_that_is_gone(tmp_path: Path) -> None:
    async with handlers(replies("Hi")) as native:
        await native.ask("chat/open", chatId="c", projectPath=str(tmp_path))
        await native.run("Hello")
        restored = await native.ask("snapshots/restore", chatId="c", id="workflow")
        (session,) = native.chats.sessions

    assert (restored.opened, restored.missing) == ([], [])
    assert restored.seq == session.recorder.last_seq


async def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        with pytest.raises(Refused) as refused:
            await native.ask("snapshots/show", chatId="c", id="sn-0")

    assert refused.value.name == "not_found"
    assert "workflow" in refused.value.message
