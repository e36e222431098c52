"""What the events add up to: each kind of event changes the derived tables in the transaction that appends it.

A handler gets the event's data as it was journalled, so importing or replaying a journal derives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..model.content import STATUS_OF_REASON, Usage
from ..model.events import DELTA_TYPES, StoredEvent, decode, encode
from .sqlite import Connection

PREVIEW_CHARACTERS = 200
"""Two lines in a list of chats."""


class Fact(NamedTuple):
    chat: int
    event: StoredEvent
    data: dict[str, Any]


def project(db: Connection, chat: int, event: StoredEvent) -> None:
    """Bring the derived tables up to this event."""
    if event.type in DELTA_TYPES:
        return
    handler = _HANDLERS.get(event.type)
    if handler:
        handler(db, Fact(chat, event, decode(event.data)))


def touch(db: Connection, chat: int) -> None:
    """Give the chat a new place in the order of changes, which other processes follow."""
    db.execute("UPDATE counters SET value = value + 1 WHERE name = 'revision'")
    db.execute(
        "UPDATE chats SET revision = (SELECT value FROM counters WHERE name = 'revision') WHERE id = ?",
        (chat,),
    )


def _prompt_queued(db: Connection, fact: Fact) -> None:
    data = fact.data
    db.execute(
        "INSERT INTO prompts (chat, id, turn, status, position, delivery, content, overrides, seq)"
        " VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?)",
        (
            fact.chat,
            data["promptId"],
            data["turnId"],
            fact.event.seq,
            data["delivery"],
            encode(data["content"]),
            encode(data.get("overrides") or {}),
            fact.event.seq,
        ),
    )


def _prompt_edited(db: Connection, fact: Fact) -> None:
    db.execute(
        "UPDATE prompts SET content = ?, revision = ? WHERE chat = ? AND id = ?",
        (encode(fact.data["content"]), fact.data["revision"], fact.chat, fact.data["promptId"]),
    )


def _prompt_removed(db: Connection, fact: Fact) -> None:
    db.execute(
        "UPDATE prompts SET status = 'removed', position = NULL, content = NULL WHERE chat = ? AND id = ?",
        (fact.chat, fact.data["promptId"]),
    )


def _prompt_accepted(db: Connection, fact: Fact) -> None:
    data, event = fact.data, fact.event
    status = "steered" if data.get("delivery") == "steer" else "started"
    db.execute(
        "INSERT INTO prompts (chat, id, turn, status, delivery, seq) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (chat, id) DO UPDATE SET status = excluded.status, turn = excluded.turn, seq = excluded.seq,"
        " position = NULL, content = NULL",
        (fact.chat, data["promptId"], data["turnId"], status, data.get("delivery") or "queue", event.seq),
    )
    if item := data.get("item"):
        _remember(db, fact, item, "user")
        db.execute(
            "UPDATE chats SET preview = ?, last_activity = ? WHERE id = ?",
            ((item.get("text") or "")[:PREVIEW_CHARACTERS], event.ts, fact.chat),
        )
        for block in item.get("content") or []:
            if blob := block.get("blobId"):
                db.execute("INSERT OR IGNORE INTO blob_uses (chat, blob) VALUES (?, ?)", (fact.chat, blob))


def _turn_started(db: Connection, fact: Fact) -> None:
    data, event = fact.data, fact.event
    db.execute(
        "INSERT INTO turns (chat, ordinal, id, prompt, parent, status, model, engine, started_at, first_seq)"
        " VALUES (?1, 1 + coalesce((SELECT max(ordinal) FROM turns WHERE chat = ?1), 0), ?2, ?3, ?4, 'running',"
        " ?5, ?6, ?7, (SELECT seq FROM prompts WHERE chat = ?1 AND id = ?3))",
        (
            fact.chat,
            event.turn_id,
            data["promptId"],
            data.get("parentTurnId"),
            data["model"],
            data["engine"],
            event.ts,
        ),
    )
    db.execute(
        "UPDATE chats SET turns = turns + 1, head = ?, model = ?, last_activity = ? WHERE id = ?",
        (event.turn_id, data["model"], event.ts, fact.chat),
    )
    touch(db, fact.chat)


def _turn_ended(db: Connection, fact: Fact) -> None:
    data, event = fact.data, fact.event
    usage = data.get("usage")
    db.execute(
        "UPDATE turns SET status = ?, reason = ?, error = ?, usage = ?, ended_at = ?, last_seq = ?"
        " WHERE chat = ? AND id = ?",
        (
            STATUS_OF_REASON[data["reason"]],
            data["reason"],
            encode(data["error"]) if data.get("error") else None,
            encode(usage) if usage else None,
            event.ts,
            event.seq,
            fact.chat,
            event.turn_id,
        ),
    )
    if usage:
        _add_usage(db, fact.chat, usage)
    db.execute("UPDATE chats SET last_activity = ? WHERE id = ?", (event.ts, fact.chat))
    touch(db, fact.chat)


def _add_usage(db: Connection, chat: int, usage: dict[str, Any]) -> None:
    (stored,) = db.execute("SELECT usage FROM chats WHERE id = ?", (chat,)).fetchone()
    total = usage_of(decode(stored)).plus(usage_of(usage))
    db.execute("UPDATE chats SET usage = ? WHERE id = ?", (encode(total), chat))


def usage_of(data: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=data.get("inputTokens"),
        output_tokens=data.get("outputTokens"),
        cached_tokens=data.get("cachedTokens"),
    )


def _message_completed(db: Connection, fact: Fact) -> None:
    _remember(db, fact, fact.data["item"], "assistant")


def _remember(db: Connection, fact: Fact, item: dict[str, Any], role: str) -> None:
    if text := item.get("text"):
        db.execute(
            "INSERT INTO messages (chat, turn, item, role, ts, text) VALUES (?, ?, ?, ?, ?, ?)",
            (fact.chat, item["turnId"], item["id"], role, fact.event.ts, text),
        )


def _chat_state(db: Connection, fact: Fact) -> None:
    db.execute("UPDATE chats SET state = ? WHERE id = ?", (fact.data["state"], fact.chat))
    touch(db, fact.chat)


def _chat_renamed(db: Connection, fact: Fact) -> None:
    db.execute(
        "UPDATE chats SET title = ?, title_by = ? WHERE id = ?",
        (fact.data["title"], fact.data["by"], fact.chat),
    )
    touch(db, fact.chat)


def _chat_rewound(db: Connection, fact: Fact) -> None:
    db.execute("UPDATE chats SET head = ? WHERE id = ?", (fact.data["head"], fact.chat))
    for turn in fact.data["hidden"]:
        db.execute("UPDATE turns SET hidden = 1 WHERE chat = ? AND id = ?", (fact.chat, turn))


def _config_updated(db: Connection, fact: Fact) -> None:
    db.execute(
        "UPDATE chats SET config = ?, project_path = coalesce(?, project_path) WHERE id = ?",
        (encode(fact.data["stored"]), fact.data.get("projectPath"), fact.chat),
    )
    touch(db, fact.chat)


def _queue_updated(db: Connection, fact: Fact) -> None:
    db.execute("UPDATE chats SET queue_paused = ? WHERE id = ?", (fact.data["paused"], fact.chat))


_HANDLERS: dict[str, Callable[[Connection, Fact], None]] = {
    "prompt.queued": _prompt_queued,
    "prompt.edited": _prompt_edited,
    "prompt.removed": _prompt_removed,
    "prompt.accepted": _prompt_accepted,
    "turn.started": _turn_started,
    "turn.ended": _turn_ended,
    "message.completed": _message_completed,
    "chat.state": _chat_state,
    "chat.renamed": _chat_renamed,
    "chat.rewound": _chat_rewound,
    "config.updated": _config_updated,
    "queue.updated": _queue_updated,
}
