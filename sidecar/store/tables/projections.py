"""Projections: each type of event changes the derived tables in the transaction that appends it.

A handler gets the event's data as journalled, so importing or replaying a journal derives the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...model.content import STATUS_OF_REASON, Usage
from ...model.events import EventData, StoredEvent, decode, encode
from ..engine.sqlite import Connection
from . import checksums, compactions, hooks, message_parts, pending_snapshot, work
from .figures import FigureTotals

TABLES = (
    "turns",
    "prompts",
    "messages",
    "blob_uses",
    "patches",
    "requests",
    "checkpoints",
    "tool_uses",
    "compactions",
    "standing",
    "restored",
)
"""Tables that handlers write, by chat: after damage they are rebuilt from the events and not copied.
Measurements (`figures`) are made once, and copied."""

PREVIEW_CHARACTERS = 200
"""Two lines in a list of chats."""


class Projection:
    """The derived rows of one commit: collected event by event, written at its end with few statements."""

    def __init__(self, db: Connection, chat: int) -> None:
        self._db = db
        self._chat = chat
        self._columns: dict[str, Any] = {}
        self._turns_added = 0
        self._touched = False
        self._accepted: dict[str, tuple[Any, ...]] = {}
        self._turns: dict[str, dict[str, Any]] = {}
        self._messages: list[tuple[Any, ...]] = []
        self._usage: Usage | None = None
        self._figures = FigureTotals()
        self._live = True

    def take(self, event: StoredEvent, *, live: bool = True) -> None:
        """Add an event. `live` is False for imported events, which are not measured again."""
        handler = _HANDLERS.get(event.type)
        if handler:
            self._live = live
            handler(self, event, decode(event.data))

    def finish(self) -> None:
        """Write the collected rows."""
        self._write_prompts()
        self._write_turns()
        if self._messages:
            for row in self._messages:
                id = self._db.execute(_MESSAGE, row).lastrowid
                message_parts.add_parts(self._db, id or 0, row[5])
        self._write_chat()
        self._figures.write(self._db, self._chat)
        if self._touched:
            touch(self._db, self._chat)

    def _prompt_queued(self, event: StoredEvent, data: EventData) -> None:
        self._write_prompts()
        content, overrides = encode(data["content"]), encode(data.get("overrides") or {})
        self._db.execute(
            "INSERT INTO prompts (chat, id, turn, status, position, delivery, content, overrides, seq)"
            " VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?4)",
            (self._chat, data["promptId"], data["turnId"], event.seq, data["delivery"], content, overrides),
        )

    def _prompt_edited(self, event: StoredEvent, data: EventData) -> None:
        self._db.execute(
            "UPDATE prompts SET content = ?, revision = ? WHERE chat = ? AND id = ?",
            (encode(data["content"]), data["revision"], self._chat, data["promptId"]),
        )

    def _prompt_removed(self, event: StoredEvent, data: EventData) -> None:
        self._db.execute(
            "UPDATE prompts SET status = 'removed', position = NULL, content = NULL WHERE chat = ? AND id = ?",
            (self._chat, data["promptId"]),
        )

    def _prompt_accepted(self, event: StoredEvent, data: EventData) -> None:
        delivery = data.get("delivery") or "queue"
        status = "steered" if delivery == "steer" else "started"
        id = data["promptId"]
        self._accepted[id] = (self._chat, id, data["turnId"], status, delivery, event.seq)
        item = data.get("item")
        if data.get("standing"):
            compactions.put_standing(self._db, self._chat, data["turnId"], data["standing"])
        if item:
            self._add_message(event, item, "user")
            self._columns["preview"] = (item.get("text") or "")[:PREVIEW_CHARACTERS]
            self._columns["last_activity"] = event.ts
            self._use_blobs(block.get("blobId") for block in item.get("content") or [])

    def _turn_started(self, event: StoredEvent, data: EventData) -> None:
        assert event.turn_id is not None
        self._turns[event.turn_id] = {
            "prompt": data["promptId"],
            "parent": data.get("parentTurnId"),
            "status": "running",
            "reason": None,
            "error": None,
            "usage": None,
            "model": data["model"],
            "engine": data["engine"],
            "started_at": event.ts,
            "ended_at": None,
            "last_seq": None,
        }
        self._turns_added += 1
        self._columns |= {"head": event.turn_id, "model": data["model"], "last_activity": event.ts}
        self._touched = True

    def _turn_ended(self, event: StoredEvent, data: EventData) -> None:
        usage = data.get("usage")
        end = {
            "status": STATUS_OF_REASON[data["reason"]],
            "reason": data["reason"],
            "error": encode(data["error"]) if data.get("error") else None,
            "usage": encode(usage) if usage else None,
            "ended_at": event.ts,
            "last_seq": event.seq,
        }
        # It began in this same commit, so its row does not exist yet.
        if event.turn_id in self._turns:
            self._turns[event.turn_id] |= end
        else:
            names = ", ".join(f"{name} = ?" for name in end)
            self._db.execute(
                f"UPDATE turns SET {names} WHERE chat = ? AND id = ?",
                (*end.values(), self._chat, event.turn_id),
            )
        if usage:
            # Added to what is stored at the end of the commit: two turns may end in one.
            self._usage = (self._usage or Usage()).plus(usage_of(usage))
        if self._live:
            self._figures.turn_ended(event, data)
        self._columns["last_activity"] = event.ts
        self._touched = True

    def _message_completed(self, event: StoredEvent, data: EventData) -> None:
        self._add_message(event, data["item"], "assistant")

    def _chat_state(self, event: StoredEvent, data: EventData) -> None:
        self._columns["state"] = data["state"]
        self._touched = True

    def _chat_renamed(self, event: StoredEvent, data: EventData) -> None:
        self._columns |= {"title": data["title"], "title_by": data["by"]}
        self._touched = True

    def _chat_rewound(self, event: StoredEvent, data: EventData) -> None:
        self._write_prompts()
        self._write_turns()
        # After the rows of this commit are written: a turn that began in it may be hidden or shown again.
        self._columns["head"] = data["head"]
        moves = [(1, turn) for turn in data["hidden"]] + [(0, turn) for turn in data.get("shown") or ()]
        self._db.executemany(
            "UPDATE turns SET hidden = ? WHERE chat = ? AND id = ?",
            [(hidden, self._chat, turn) for hidden, turn in moves],
        )

    def _config_updated(self, event: StoredEvent, data: EventData) -> None:
        self._columns["config"] = encode(data["stored"])
        if data.get("projectPath"):
            self._columns["project_path"] = data["projectPath"]
            self._columns["elsewhere"] = 0
        self._touched = True

    def _queue_updated(self, event: StoredEvent, data: EventData) -> None:
        self._columns["queue_paused"] = data["paused"]

    def _command_result(self, event: StoredEvent, data: EventData) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO prompts (chat, id, turn, status, delivery, seq) VALUES (?, ?, '', 'command', '', ?)",
            (self._chat, data["promptId"], event.seq),
        )

    def _tool_started(self, event: StoredEvent, data: EventData) -> None:
        self._db.execute(
            "INSERT INTO tool_uses (chat, name, count) VALUES (?, ?, 1)"
            " ON CONFLICT (chat, name) DO UPDATE SET count = count + 1",
            (self._chat, data["item"].get("name") or ""),
        )

    def _tool_moved(self, event: StoredEvent, data: EventData) -> None:
        item = data["item"]
        changes = item.get("changes") or ()
        refs = [change.get(side) for change in changes for side in ("oldRef", "newRef")]
        output = item.get("output") or {}
        media = [block.get("blobId") for block in output.get("content") or ()]
        self._use_blobs([*refs, output.get("ref"), *media])

    def _tool_ended(self, event: StoredEvent, data: EventData) -> None:
        self._tool_moved(event, data)
        if self._live and data["item"]["type"] == "tool":
            self._figures.tool_ended(event, data)

    def _context_assembled(self, event: StoredEvent, data: EventData) -> None:
        self._use_sent_blocks(data.get("kept") or ())
        if event.turn_id:
            pending_snapshot.mark_sent(self._db, self._chat, event.turn_id, data.get("blocks") or [])

    def _snapshot_restored(self, event: StoredEvent, data: EventData) -> None:
        pending_snapshot.put(self._db, self._chat, data)

    def _compaction_ended(self, event: StoredEvent, data: EventData) -> None:
        self._resolve_request(event, {"compactionId": data["compactionId"]})
        if data["item"]["status"] == "completed":
            compactions.put(self._db, self._chat, event.seq, data)
            self._use_sent_blocks(data.get("files") or ())
            if self._live:
                self._figures.count_compaction(event, data["item"])

    def _compaction_undone(self, event: StoredEvent, data: EventData) -> None:
        undone = compactions.undo(self._db, self._chat, data["compactionId"])
        if undone and self._live:
            self._figures.count_compaction(event, undone, undone=True)

    def _hook_ran(self, event: StoredEvent, data: EventData) -> None:
        if self._live:
            hooks.put(self._db, event.ts, data)

    def _files_updated(self, event: StoredEvent, data: EventData) -> None:
        self._columns["open_files"] = encode(data["files"])

    def _patch_recorded(self, event: StoredEvent, data: EventData) -> None:
        work.put_patch(self._db, self._chat, data)
        self._use_blobs([data.get("oldRef"), data.get("newRef")])

    def _patches_cleared(self, event: StoredEvent, data: EventData) -> None:
        self._db.executemany(
            "UPDATE patches SET cleared = 1 WHERE chat = ? AND id = ?",
            [(self._chat, id) for id in data["ids"]],
        )

    def _insert_request(self, event: StoredEvent, data: EventData) -> None:
        kind = event.type.partition(".")[0]
        self._db.execute(
            "INSERT OR IGNORE INTO requests (id, chat, kind, turn, data) VALUES (?, ?, ?, ?, ?)",
            (data[f"{kind}Id"], self._chat, kind, event.turn_id or "", encode(data)),
        )

    def _resolve_request(self, event: StoredEvent, data: EventData) -> None:
        kind = event.type.partition(".")[0]
        self._db.execute(
            "UPDATE requests SET outcome = ? WHERE id = ? AND chat = ?",
            (encode(data), data[f"{kind}Id"], self._chat),
        )

    def _checkpoint_saved(self, event: StoredEvent, data: EventData) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO checkpoints (chat, name, head, seq, ts) VALUES (?, ?, ?, ?, ?)",
            (self._chat, data["name"], data.get("head"), event.seq, event.ts),
        )

    def _use_sent_blocks(self, kept: Iterable[EventData]) -> None:
        self._use_blobs([one.get(side) for one in kept for side in ("ref", "source")])

    def _use_blobs(self, ids: Iterable[str | None]) -> None:
        """Reference these blobs for as long as the chat exists."""
        self._db.executemany(
            "INSERT OR IGNORE INTO blob_uses (chat, blob) VALUES (?, ?)",
            [(self._chat, id) for id in ids if id],
        )

    def _add_message(self, event: StoredEvent, item: EventData, role: str) -> None:
        if text := item.get("text"):
            columns = (self._chat, item["turnId"], item["id"], role, event.ts, text)
            self._messages.append((*columns, checksums.message_checksum(*columns)))

    def _write_prompts(self) -> None:
        if self._accepted:
            self._db.executemany(_ACCEPTED, list(self._accepted.values()))
            self._accepted = {}

    def _write_turns(self) -> None:
        """Insert the turns that began in this commit; the first event of a turn is its prompt."""
        if not self._turns:
            return
        self._write_prompts()
        (last,) = self._db.execute(
            "SELECT coalesce(max(ordinal), 0) FROM turns WHERE chat = ?", (self._chat,)
        ).fetchone()
        rows = [
            {"chat": self._chat, "ordinal": ordinal, "id": id, **turn}
            for ordinal, (id, turn) in enumerate(self._turns.items(), last + 1)
        ]
        self._db.executemany(_TURN, rows)
        self._turns = {}

    def _write_chat(self) -> None:
        if self._usage:
            (stored,) = self._db.execute("SELECT usage FROM chats WHERE id = ?", (self._chat,)).fetchone()
            self._columns["usage"] = encode(usage_of(decode(stored)).plus(self._usage))
        names = [f"{name} = ?" for name in self._columns] + ["turns = turns + ?"]
        self._db.execute(
            f"UPDATE chats SET {', '.join(names)} WHERE id = ?",
            (*self._columns.values(), self._turns_added, self._chat),
        )


def touch(db: Connection, chat: int) -> None:
    """Give the chat a new change number, which other processes follow."""
    db.execute("UPDATE counters SET value = value + 1 WHERE name = 'revision'")
    db.execute(
        "UPDATE chats SET revision = (SELECT value FROM counters WHERE name = 'revision') WHERE id = ?",
        (chat,),
    )


def usage_of(data: EventData) -> Usage:
    return Usage(
        input_tokens=data.get("inputTokens"),
        output_tokens=data.get("outputTokens"),
        cached_tokens=data.get("cachedTokens"),
        cost=data.get("cost"),
    )


_ACCEPTED = (
    "INSERT INTO prompts (chat, id, turn, status, delivery, seq) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (chat, id) DO UPDATE SET status = excluded.status, turn = excluded.turn, seq = excluded.seq,"
    " position = NULL, content = NULL"
)
_TURN = (
    "INSERT INTO turns (chat, ordinal, id, prompt, parent, status, reason, error, usage, model, engine,"
    " started_at, ended_at, last_seq, first_seq)"
    " VALUES (:chat, :ordinal, :id, :prompt, :parent, :status, :reason, :error, :usage, :model, :engine,"
    " :started_at, :ended_at, :last_seq, (SELECT seq FROM prompts WHERE chat = :chat AND id = :prompt))"
)
_MESSAGE = "INSERT INTO messages (chat, turn, item, role, ts, text, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"

_HANDLERS: dict[str, Callable[[Projection, StoredEvent, EventData], None]] = {
    "prompt.queued": Projection._prompt_queued,
    "prompt.edited": Projection._prompt_edited,
    "prompt.removed": Projection._prompt_removed,
    "prompt.accepted": Projection._prompt_accepted,
    "turn.started": Projection._turn_started,
    "turn.ended": Projection._turn_ended,
    "message.completed": Projection._message_completed,
    "chat.state": Projection._chat_state,
    "chat.renamed": Projection._chat_renamed,
    "chat.rewound": Projection._chat_rewound,
    "config.updated": Projection._config_updated,
    "queue.updated": Projection._queue_updated,
    "command.result": Projection._command_result,
    "tool.started": Projection._tool_started,
    "tool.updated": Projection._tool_moved,
    "tool.ended": Projection._tool_ended,
    "hook.ran": Projection._hook_ran,
    "files.updated": Projection._files_updated,
    "patch.recorded": Projection._patch_recorded,
    "patches.cleared": Projection._patches_cleared,
    "permission.requested": Projection._insert_request,
    "permission.resolved": Projection._resolve_request,
    "input.requested": Projection._insert_request,
    "input.resolved": Projection._resolve_request,
    "checkpoint.saved": Projection._checkpoint_saved,
    "context.assembled": Projection._context_assembled,
    "compaction.started": Projection._insert_request,
    "import.started": Projection._insert_request,
    "import.ended": Projection._resolve_request,
    "compaction.ended": Projection._compaction_ended,
    "compaction.undone": Projection._compaction_undone,
    "snapshot.restored": Projection._snapshot_restored,
}
