"""Turns and waiting prompts, read back as values. Items come from a turn's events, so a page costs what it shows."""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.chats import Prompt, PromptRecord
from ..model.content import Block, Item, Turn, Usage
from ..model.events import StoredEvent, decode, encode
from ..model.failures import Refused, invalid
from ..model.items import context_of, fold
from . import journal
from .projections import usage_of
from .sqlite import Connection

_COLUMNS = (
    "ordinal, id, prompt, parent, status, reason, error, usage, model, engine, started_at, ended_at, first_seq,"
    " last_seq, hidden"
)
_blocks = msgspec.json.Decoder(list[Block]).decode


class Node(msgspec.Struct, frozen=True):
    """A turn's place in the tree of a chat, and which part of the journal is its."""

    id: str
    parent: str | None
    hidden: bool
    status: str
    first_seq: int
    last_seq: int | None


class TurnPage(msgspec.Struct, frozen=True):
    """Turns in order, and the cursors of what lies before and after them."""

    turns: list[Turn]
    before: str | None
    after: str | None


def newest(db: Connection, chat: int, limit: int, max_bytes: int) -> TurnPage:
    return before(db, chat, None, limit, max_bytes)


def before(
    db: Connection, chat: int, cursor: str | None, limit: int, max_bytes: int, floor: int = 0
) -> TurnPage:
    """The newest visible turns before the cursor, and behind the ordinal `floor`."""
    rows = rows_before(db, chat, cursor, limit, floor)
    return _page(db, chat, _within(db, chat, rows, max_bytes)[::-1])


def rows_before(
    db: Connection, chat: int, cursor: str | None, limit: int, floor: int
) -> list[tuple[Any, ...]]:
    """The rows of those turns, the newest first; a row begins with the turn's ordinal."""
    bound = _ordinal(cursor) if cursor is not None else 2**53
    return db.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND hidden = 0 AND ordinal < ? AND ordinal > ?"
        " ORDER BY ordinal DESC LIMIT ?",
        (chat, bound, floor, limit),
    ).fetchall()


def cursor_before(db: Connection, chat: int, ordinal: int) -> str | None:
    """The cursor of what lies before a turn; None when nothing does."""
    return _cursor(ordinal) if _exists(db, chat, "<", ordinal) else None


def after(db: Connection, chat: int, cursor: str, limit: int, max_bytes: int) -> TurnPage:
    """The oldest visible turns after the cursor."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND hidden = 0 AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (chat, _ordinal(cursor), limit),
    ).fetchall()
    return _page(db, chat, _within(db, chat, rows, max_bytes))


def around(db: Connection, chat: int, turn: str, limit: int, max_bytes: int) -> TurnPage:
    """The visible turns on both sides of one."""
    row = db.execute("SELECT ordinal FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    if row is None:
        raise unknown_turn(turn)
    start = db.execute(
        "SELECT coalesce(min(ordinal), 0) FROM (SELECT ordinal FROM turns WHERE chat = ? AND hidden = 0"
        " AND ordinal <= ? ORDER BY ordinal DESC LIMIT ?)",
        (chat, row[0], limit // 2 + 1),
    ).fetchone()[0]
    return after(db, chat, _cursor(start - 1), limit, max_bytes)


def everything(db: Connection, chat: int) -> list[Turn]:
    """All turns, hidden ones too, in the order in which they were started."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM turns WHERE chat = ? ORDER BY ordinal", (chat,)).fetchall()
    return [of_row(db, chat, row) for row in rows]


def get(db: Connection, chat: int, turn: str) -> Turn | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    return of_row(db, chat, row) if row else None


def item_of_source(db: Connection, chat: int, source: str) -> Item | None:
    query = (
        "SELECT data FROM events WHERE chat = ? AND type = 'tool.ended' AND instr(CAST(data AS TEXT), ?)"
        " ORDER BY seq DESC"
    )
    for (data,) in db.execute(query, (chat, source)):
        item = msgspec.convert(decode(data)["item"], Item)
        if (item.output or {}).get("source") == source:
            return item
    return None


def running(db: Connection, chat: int) -> Turn | None:
    """The turn that has not ended, with its items as far as they got."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND status = 'running'", (chat,)
    ).fetchone()
    return of_row(db, chat, row) if row else None


def visible_from(db: Connection, chat: int, turn: str) -> list[str]:
    """The visible turn `turn` and those after it."""
    rows = db.execute(
        "SELECT id FROM turns WHERE chat = ?1 AND hidden = 0"
        " AND ordinal >= (SELECT ordinal FROM turns WHERE chat = ?1 AND id = ?2 AND hidden = 0) ORDER BY ordinal",
        (chat, turn),
    )
    return [id for (id,) in rows]


def tree(db: Connection, chat: int) -> list[Node]:
    """All turns in the order in which they were started, hidden ones too."""
    query = (
        "SELECT id, parent, hidden, status, first_seq, last_seq FROM turns WHERE chat = ? ORDER BY ordinal"
    )
    return [
        Node(id, parent, bool(hidden), status, first, last)
        for id, parent, hidden, status, first, last in db.execute(query, (chat,))
    ]


def queue(db: Connection, chat: int) -> list[Prompt]:
    rows = db.execute(
        "SELECT id, turn, content, delivery, overrides, revision FROM prompts"
        " WHERE chat = ? AND status = 'queued' ORDER BY position",
        (chat,),
    )
    return [
        Prompt(id, turn, _blocks(content), delivery, decode(overrides), revision)
        for id, turn, content, delivery, overrides, revision in rows
    ]


def prompt(db: Connection, chat: int, id: str) -> PromptRecord | None:
    row = db.execute("SELECT turn, status, seq FROM prompts WHERE chat = ? AND id = ?", (chat, id)).fetchone()
    return PromptRecord(*row) if row else None


def unknown_turn(turn: str) -> Refused:
    return Refused(
        "not_found", f"`turnId`: this chat has no turn {turn!r}", params={"field": "turnId", "turnId": turn}
    )


def _within(db: Connection, chat: int, rows: list[tuple[Any, ...]], max_bytes: int) -> list[Turn]:
    """The turns of `rows`, as many as fit, at least one."""
    turns: list[Turn] = []
    size = 0
    for row in rows:
        turn = of_row(db, chat, row)
        size += len(encode(turn))
        if turns and size > max_bytes:
            break
        turns.append(turn)
    return turns


def _page(db: Connection, chat: int, turns: list[Turn]) -> TurnPage:
    if not turns:
        return TurnPage([], None, None)
    first, last = (_ordinal_of(db, chat, turn.id) for turn in (turns[0], turns[-1]))
    return TurnPage(
        _with_siblings(db, chat, turns),
        _cursor(first) if _exists(db, chat, "<", first) else None,
        _cursor(last) if _exists(db, chat, ">", last) else None,
    )


def _with_siblings(db: Connection, chat: int, turns: list[Turn]) -> list[Turn]:
    """A turn's siblings answer the same place in the chat: regenerated or edited versions, hidden or not."""
    shown = []
    for turn in turns:
        rows = db.execute(
            "SELECT id FROM turns INDEXED BY turns_by_parent WHERE chat = ? AND parent IS ? ORDER BY ordinal",
            (chat, turn.parent_turn_id),
        )
        siblings = [id for (id,) in rows if id != turn.id]
        shown.append(msgspec.structs.replace(turn, siblings=siblings) if siblings else turn)
    return shown


def of_row(db: Connection, chat: int, row: tuple[Any, ...]) -> Turn:
    """The turn of a row, its items read from the journal."""
    (
        _,
        id,
        prompt,
        parent,
        status,
        reason,
        error,
        usage,
        model,
        engine,
        started,
        ended,
        first,
        last,
        hidden,
    ) = row
    events = journal.read_turn(db, chat, id, first, last)
    return Turn(
        id=id,
        prompt_id=prompt,
        items=fold(events),
        status=status,
        model=model,
        engine=engine,
        started_at=started,
        parent_turn_id=parent,
        reason=reason,
        error=decode(error) if error else None,
        usage=usage_of(decode(usage)) if usage else None if last else _usage_so_far(events),
        ended_at=ended,
        hidden=bool(hidden),
        context=context_of(events),
    )


def _usage_so_far(events: list[StoredEvent]) -> Usage | None:
    """What the provider has told of a turn that has not ended: its end will say the same, also after a crash."""
    told = [event for event in events if event.type == "usage.updated"]
    usage = usage_of(decode(told[-1].data)["turn"]) if told else Usage()
    return usage if usage != Usage() else None


def _exists(db: Connection, chat: int, comparison: str, ordinal: int) -> bool:
    query = f"SELECT 1 FROM turns WHERE chat = ? AND hidden = 0 AND ordinal {comparison} ? LIMIT 1"
    return db.execute(query, (chat, ordinal)).fetchone() is not None


def _ordinal_of(db: Connection, chat: int, turn: str) -> int:
    (ordinal,) = db.execute("SELECT ordinal FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    return int(ordinal)


def _cursor(ordinal: int) -> str:
    return f"turn.{ordinal}"


def _ordinal(cursor: str) -> int:
    kind, _, digits = cursor.partition(".")
    if kind != "turn" or not digits.isdecimal() or len(digits) > 15:
        raise invalid("before/after", "a cursor of an earlier answer")
    return int(digits)
