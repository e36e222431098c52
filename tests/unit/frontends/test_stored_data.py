"""The handlers of stored data: exports, imports, searches, figures, snapshots, moved projects, changed prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.providers.base import Completion, TextDelta
from tests.unit.chat.memory import finish
from tests.unit.engines.sinks import ScriptedReplies

from .native import handlers, replies


async def test_an_exported_chat_is_imported_as_another() -> None:
    async with handlers(replies("An answer")) as native:
        await native.run("A question")
        exported = await native.ask("chat/export", chatId="c")
        imported = await native.ask("chat/import", chatId="d", data=exported.data)
        (turn,) = (await native.ask("chat/history", chatId="d")).turns

    assert imported.turns == 1
    assert [item.text for item in turn.items] == ["A question", "An answer"]


async def test_a_chat_is_found_by_its_words() -> None:
    async with handlers(replies("An answer", "Another")) as native:
        await native.run("Where is the spindle?")
        await native.run("Something else", chat="d")
        found = await native.ask("chat/search", query="spindle")

    assert [hit.chat_id for hit in found.items] == ["c"]


async def test_figures_count_the_turns_of_a_chat() -> None:
    async with handlers(replies("one", "two")) as native:
        await native.run("1")
        await native.run("2")
        chat = await native.ask("stats/read", chatId="c", scope="chat")
        everything = await native.ask("stats/read")

    assert (chat.scope, everything.scope) == ("chat", "all")
    assert (chat.turns, everything.turns) == (2, 2)


async def test_a_snapshot_is_listed_shown_and_restored() -> None:
    async with handlers(replies("one")) as native:
        await native.run("Port the parser to C")
        (session,) = native.chats.sessions
        await session.resume_snapshots.take_snapshot("close")
        now, listed = (await native.ask("snapshots/list", chatId="c")).items
        shown = await native.ask("snapshots/show", chatId="c", id=listed.id)
        restored = await native.ask("snapshots/restore", chatId="c", id=listed.id)
        with pytest.raises(Refused):
            await native.ask("snapshots/show", chatId="c", id="sn-0")

    assert "Port the parser to C" in shown.text
    assert now.kind == "workflow"
    assert (listed.reason, shown.snapshot.id, restored.snapshot.id) == ("close", listed.id, listed.id)


async def test_a_moved_project_brings_its_chats(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    async with handlers(replies("one")) as native:
        await native.run("Hello", projectPath=str(old))
        old.rename(new)
        moved = await native.ask("projects/rebind", **{"from": str(old), "to": str(new)})
        (chat,) = (await native.ask("chat/list", projectPath=str(new))).items

    assert (moved.path, moved.chats, chat.project_path) == (str(new), 1, str(new))


async def test_a_waiting_prompt_is_changed_and_removed() -> None:
    provider = ScriptedReplies([TextDelta("one")])
    async with handlers(provider) as native:
        await native.ask("prompt/send", chatId="c", promptId="p", text="first")
        await native.ask("prompt/send", chatId="c", promptId="q", text="second")
        content = [{"type": "text", "text": "third"}]
        edited = await native.ask("prompt/edit", chatId="c", promptId="q", content=content, revision=1)
        with pytest.raises(Refused) as stale:
            await native.ask("prompt/remove", chatId="c", promptId="q", revision=1)
        removed = await native.ask("prompt/remove", chatId="c", promptId="q", revision=2)

    (waiting,) = edited.queue.items
    assert (waiting.content[0].text, waiting.revision) == ("third", 2)
    assert (stale.value.name, removed.queue.items) == ("precondition_failed", [])


async def test_a_turn_is_answered_again_in_its_place() -> None:
    script: list[TextDelta | Completion] = [TextDelta("worse"), Completion("end_turn")]
    again: list[TextDelta | Completion] = [TextDelta("better"), Completion("end_turn")]
    async with handlers(ScriptedReplies(script, again)) as native:
        await native.run("Hello")
        retried = await native.ask("turn/retry", chatId="c", promptId="again")
        (session,) = native.chats.sessions
        await finish(session)
        (turn,) = (await native.ask("chat/history", chatId="c")).turns

    assert (retried.disposition, turn.id) == ("started", retried.turn_id)
    assert [item.text for item in turn.items] == ["Hello", "better"]
