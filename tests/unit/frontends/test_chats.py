"""The handlers of chats: what `chat/open` replays, pages, changes, and what is refused by its field."""

from __future__ import annotations

from typing import Any

import pytest
from sidecar_protocol import messages as m

from sidecar.model.failures import Refused

from .native import handlers, replies


async def test_a_new_chat_is_created_and_an_open_one_is_attached() -> None:
    async with handlers(replies()) as native:
        first = await native.ask("chat/open", chatId="c")
        second = await native.ask("chat/open", chatId="c")

    assert (first.status, first.access, first.turns, first.last_seq) == ("created", "writer", [], 0)
    assert (second.status, second.session_id) == ("attached", first.session_id)


async def test_a_closed_chat_is_resumed_with_its_turns() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        closed = await native.ask("chat/close", chatId="c")
        opened = await native.ask("chat/open", chatId="c")

    assert (closed.closed, opened.status) == (True, "resumed")
    (turn,) = opened.turns
    assert [item.text for item in turn.items if item.type == "message"] == ["Hi"]


REPLAYS: dict[str, tuple[Any, str, str | None]] = {
    "from the start": ("start", "events", None),
    "only what is new": ("tail", "none", None),
    "from a cursor": ({"seq": 2}, "events", None),
    "a cursor at the end": ({"seq": -1}, "none", None),
    "a cursor of another epoch": ({"epoch": "other", "seq": 2}, "snapshot", "unknown_epoch"),
    "a cursor past the end": ({"seq": 1000}, "snapshot", "unknown_cursor"),
}


@pytest.mark.parametrize("kind", REPLAYS)
async def test_a_chat_is_replayed_from_where_the_client_was(kind: str) -> None:
    after, replayed, reason = REPLAYS[kind]
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        await native.ask("chat/close", chatId="c")
        (session,) = native.chats.sessions
        last = session.recorder.feed.last_seq
        if isinstance(after, dict):
            after = {"epoch": session.chat.epoch, **after}
            after["seq"] = last if after["seq"] == -1 else after["seq"]
        opened = await native.ask("chat/open", chatId="c", after=after)

    assert (opened.replay.kind, opened.replay.reason) == (replayed, reason)
    if replayed == "events":
        start = after["seq"] if isinstance(after, dict) else 0
        assert (opened.replay.from_, opened.replay.to) == (start + 1, last)


async def test_a_missing_chat_is_refused_where_none_is_to_be_made() -> None:
    async with handlers(replies()) as native:
        with pytest.raises(Refused, match="There is no chat"):
            await native.ask("chat/open", chatId="c", ifMissing="fail")

    assert native.chats.sessions == []


async def test_a_title_is_set_and_removed() -> None:
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c")
        named = await native.ask("chat/rename", chatId="c", title="Engines")
        (listed,) = (await native.ask("chat/list")).items
        unnamed = await native.ask("chat/rename", chatId="c", title=None)

    assert (named.title, listed.title, unnamed.title) == ("Engines", "Engines", None)
    assert named.seq < unnamed.seq


async def test_an_archived_chat_is_listed_among_the_archived() -> None:
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c")
        await native.ask("chat/archive", chatId="c", archived=True)
        shown = await native.ask("chat/list", archived=False)
        archived = await native.ask("chat/list", archived=True)

    assert (shown.items, [item.chat_id for item in archived.items]) == ([], ["c"])


async def test_a_deleted_chat_is_gone_and_deleting_it_again_says_so() -> None:
    async with handlers(replies()) as native:
        opened = await native.ask("chat/open", chatId="c")
        first = await native.ask("chat/delete", chatId="c")
        second = await native.ask("chat/delete", chatId="c")

    assert first == m.ChatDeleteResult(session_id=opened.session_id, deleted=True)
    assert second.deleted is False


async def test_history_is_paged_by_turns() -> None:
    async with handlers(replies("one", "two", "three")) as native:
        for text in ("1", "2", "3"):
            await native.run(text)
        newest = await native.ask("chat/history", chatId="c", limit=2)
        older = await native.ask("chat/history", chatId="c", limit=2, before=newest.before)

    said = [[item.text for item in turn.items if item.type == "message"] for turn in newest.turns]
    assert said == [["two"], ["three"]]
    assert (len(older.turns), older.before) == (1, None)


async def test_events_are_read_in_pages_up_to_the_last() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        (session,) = native.chats.sessions
        after = {"epoch": session.chat.epoch, "seq": 0}
        first = await native.ask("events/read", chatId="c", after=after, limit=2)
        after["seq"] = first["next"].seq
        rest = await native.ask("events/read", chatId="c", after=after)

    assert [event["type"] for event in first["events"]] == ["prompt.accepted", "turn.started"]
    assert (first["hasMore"], rest["hasMore"]) == (True, False)
    assert rest["next"].seq == session.recorder.feed.last_seq


async def test_a_setting_is_changed_and_returned() -> None:
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c")
        changed = await native.ask("chat/configure", chatId="c", set={"mode": "auto"})

    assert changed.config["mode"] == "auto"
    assert changed.seq == 1


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a title without a character": ("chat/rename", {"title": ""}, "title"),
    "a title that is too long": ("chat/rename", {"title": "x" * 501}, "title"),
    "a page of no turns": ("chat/history", {"limit": 0}, "limit"),
    "a page of no bytes": ("chat/history", {"maxBytes": 0}, "maxBytes"),
    "two places in the history": ("chat/history", {"before": "a", "after": "b"}, "before/after/around"),
    "a setting that does not exist": ("chat/configure", {"set": {"colour": "red"}}, "set.colour"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_wrong_parameter_is_refused_by_its_name(kind: str) -> None:
    method, params, field = REFUSED[kind]
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c")
        with pytest.raises(Refused) as refused:
            await native.ask(method, chatId="c", **params)

    assert (refused.value.params or {})["field"] == field
