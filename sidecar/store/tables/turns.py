"""Turns and queued prompts, read as values. Items are read from a turn's events, so a page costs what it
shows."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.chats import Prompt, PromptOverrides, PromptRecord
from ...model.content import Block, Branch, Item, Turn, Usage, stored_error, stored_item
from ...model.events import StoredEvent, decode, encode
from ...model.failures import Refused, invalid_param
from ...model.items import fold_items, is_alone, sent_blocks
from ...model.refusals import without_refused
from ..engine.sqlite import Connection
from . import journal, refusals
from .projections import usage_of

_COLUMNS = (
    "ordinal, id, prompt, parent, status, reason, error, usage, model, engine, started_at, ended_at, first_seq,"
    " last_seq, hidden"
)
_blocks = msgspec.json.Decoder(list[Block]).decode
_overrides = msgspec.json.Decoder(PromptOverrides).decode


class TurnNode(msgspec.Struct, frozen=True):
    """A turn's position in the tree of a chat, and its range of the journal."""

    id: str
    parent: str | None
    hidden: bool
    status: str
    first_seq: int
    last_seq: int | None


class _Line(msgspec.Struct, frozen=True):
    """The turns that a page is taken from: the visible ones, or those of a hidden branch up to its tip."""

    tip: int | None = None

    @property
    def where(self) -> str:
        """The condition for a turn; the parameter `:tip` is the ordinal of the tip."""
        return "hidden = 0" if self.tip is None else f"ordinal IN ({_ANCESTORS})"

    def cursor(self, ordinal: int) -> str:
        return f"turn.{ordinal}" if self.tip is None else f"turn.{ordinal}.{self.tip}"


_VISIBLE = _Line()

_ANCESTORS = (
    "WITH RECURSIVE line (ordinal, parent) AS (SELECT ordinal, parent FROM turns WHERE chat = :chat AND ordinal = :tip"
    " UNION ALL SELECT t.ordinal, t.parent FROM line JOIN turns t ON t.chat = :chat AND t.id = line.parent)"
    " SELECT ordinal FROM line"
)

_DESCENDANTS = (
    "WITH RECURSIVE branch (id, ordinal) AS (SELECT id, ordinal FROM turns WHERE chat = :chat AND id = :turn"
    " UNION ALL SELECT t.id, t.ordinal FROM branch JOIN turns t INDEXED BY turns_by_parent"
    " ON t.chat = :chat AND t.parent = branch.id)"
)


class TurnPage(msgspec.Struct, frozen=True):
    """Turns in order, and the cursors of the pages before and after them."""

    turns: list[Turn]
    before: str | None
    after: str | None


def newest(db: Connection, chat: int, limit: int, max_bytes: int) -> TurnPage:
    return before(db, chat, None, limit, max_bytes)


def before(db: Connection, chat: int, cursor: str | None, limit: int, max_bytes: int) -> TurnPage:
    """Return the newest turns before the cursor: visible ones, or those of the branch that the cursor is of."""
    bound, line = _parse(cursor) if cursor is not None else (2**53, _VISIBLE)
    rows = _rows(db, chat, line, "ordinal < :bound ORDER BY ordinal DESC", bound, limit)
    return _with_branches(db, chat, _page(db, chat, _turns_within(db, chat, rows, max_bytes)[::-1], line))


def sent_before(
    db: Connection, chat: int, cursor: str | None, limit: int, max_bytes: int, floor: int
) -> TurnPage:
    """Return the newest visible turns before the cursor and after the ordinal `floor` that may be sent to a
    model."""
    rows = rows_sent(db, chat, cursor, limit, floor)
    return _page(db, chat, [without_refused(turn) for turn in _turns_within(db, chat, rows, max_bytes)[::-1]])


def rows_sent(db: Connection, chat: int, cursor: str | None, limit: int, floor: int) -> list[tuple[Any, ...]]:
    """Return the rows of those turns, newest first; a row starts with the turn's ordinal."""
    bound = _parse(cursor)[0] if cursor is not None else 2**53
    return db.execute(
        f"SELECT {_COLUMNS} FROM turns t WHERE chat = ? AND hidden = 0 AND ordinal < ? AND ordinal > ?"
        f" AND {refusals.sent_condition('t')} ORDER BY ordinal DESC LIMIT ?",
        (chat, bound, floor, limit),
    ).fetchall()


def first_sent(db: Connection, chat: int) -> Turn | None:
    """Return the oldest visible turn that may be sent to a model."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM turns t WHERE chat = ? AND hidden = 0 AND {refusals.sent_condition('t')}"
        " ORDER BY ordinal LIMIT 1",
        (chat,),
    ).fetchone()
    return turn_of_row(db, chat, row) if row else None


def cursor_before(db: Connection, chat: int, ordinal: int) -> str | None:
    """Return the cursor of the page before a turn; None when there is none."""
    return _VISIBLE.cursor(ordinal) if _exists(db, chat, _VISIBLE, "<", ordinal) else None


def after(db: Connection, chat: int, cursor: str, limit: int, max_bytes: int) -> TurnPage:
    """Return the oldest turns after the cursor: visible ones, or those of the branch that the cursor is of."""
    bound, line = _parse(cursor)
    rows = _rows(db, chat, line, "ordinal > :bound ORDER BY ordinal", bound, limit)
    return _with_branches(db, chat, _page(db, chat, _turns_within(db, chat, rows, max_bytes), line))


def around(db: Connection, chat: int, turn: str, limit: int, max_bytes: int) -> TurnPage:
    """Return the turns on both sides of one: visible ones, or those of the branch of a hidden one."""
    row = db.execute("SELECT ordinal, hidden FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    if row is None:
        raise unknown_turn(turn)
    ordinal, hidden = row
    line = _Line(_tip(db, chat, turn)[1]) if hidden else _VISIBLE
    before = _rows(db, chat, line, "ordinal <= :bound ORDER BY ordinal DESC", ordinal, limit // 2 + 1)
    start = before[-1][0] if before else 0
    return after(db, chat, line.cursor(start - 1), limit, max_bytes)


def _rows(
    db: Connection, chat: int, line: _Line, bounded: str, bound: int, limit: int
) -> list[tuple[Any, ...]]:
    query = f"SELECT {_COLUMNS} FROM turns WHERE chat = :chat AND {line.where} AND {bounded} LIMIT :limit"
    values = {"chat": chat, "tip": line.tip, "bound": bound, "limit": limit}
    return db.execute(query, values).fetchall()


def _tip(db: Connection, chat: int, turn: str) -> tuple[str, int, int]:
    """Return the newest turn of the branch that starts with a turn: its id, its ordinal, and its distance."""
    query = f"{_DESCENDANTS} SELECT id, ordinal FROM branch ORDER BY ordinal DESC LIMIT 1"
    tip, ordinal = db.execute(query, {"chat": chat, "turn": turn}).fetchone()
    first = "(SELECT ordinal FROM turns WHERE chat = :chat AND id = :turn)"
    query = f"SELECT count(*) FROM ({_ANCESTORS}) WHERE ordinal >= {first}"
    (count,) = db.execute(query, {"chat": chat, "turn": turn, "tip": ordinal}).fetchone()
    return tip, ordinal, count


def all_turns(db: Connection, chat: int) -> list[Turn]:
    """Return all turns, including hidden ones, in the order in which they started."""
    # Row by row: while the statement runs, closing the database can interrupt it.
    rows = db.execute(f"SELECT {_COLUMNS} FROM turns WHERE chat = ? ORDER BY ordinal", (chat,))
    return [turn_of_row(db, chat, row) for row in rows]


def get(db: Connection, chat: int, turn: str) -> Turn | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    return turn_of_row(db, chat, row) if row else None


def item_of_source(db: Connection, chat: int, source: str) -> Item | None:
    query = (
        "SELECT data FROM events WHERE chat = ? AND type = 'tool.ended' AND instr(CAST(data AS TEXT), ?)"
        " ORDER BY seq DESC"
    )
    # `instr` finds candidates without decoding each output; the id may also occur in the text of one.
    for (data,) in db.execute(query, (chat, source)):
        item = stored_item(decode(data)["item"])
        if item.output_source == source:
            return item
    return None


def running(db: Connection, chat: int) -> Turn | None:
    """Return the turn that has not ended, with its items so far."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE chat = ? AND status = 'running'", (chat,)
    ).fetchone()
    return turn_of_row(db, chat, row) if row else None


def visible_from(db: Connection, chat: int, turn: str) -> list[str]:
    """Return the visible turn `turn` and those after it."""
    rows = db.execute(
        "SELECT id FROM turns WHERE chat = ?1 AND hidden = 0"
        " AND ordinal >= (SELECT ordinal FROM turns WHERE chat = ?1 AND id = ?2 AND hidden = 0) ORDER BY ordinal",
        (chat, turn),
    )
    return [id for (id,) in rows]


def tree(db: Connection, chat: int) -> list[TurnNode]:
    """Return all turns in the order in which they started, including hidden ones."""
    query = (
        "SELECT id, parent, hidden, status, first_seq, last_seq FROM turns WHERE chat = ? ORDER BY ordinal"
    )
    return [
        TurnNode(id, parent, bool(hidden), status, first, last)
        for id, parent, hidden, status, first, last in db.execute(query, (chat,))
    ]


def queue(db: Connection, chat: int) -> list[Prompt]:
    rows = db.execute(
        "SELECT id, turn, content, delivery, overrides, revision FROM prompts"
        " WHERE chat = ? AND status = 'queued' ORDER BY position",
        (chat,),
    )
    return [
        Prompt(id, turn, _blocks(content), delivery, _overrides(overrides), revision)
        for id, turn, content, delivery, overrides, revision in rows
    ]


def prompt(db: Connection, chat: int, id: str) -> PromptRecord | None:
    row = db.execute("SELECT turn, status, seq FROM prompts WHERE chat = ? AND id = ?", (chat, id)).fetchone()
    return PromptRecord(*row) if row else None


def unknown_turn(turn: str) -> Refused:
    return Refused(
        "not_found", f"`turnId`: this chat has no turn {turn!r}", params={"field": "turnId", "turnId": turn}
    )


def _turns_within(db: Connection, chat: int, rows: list[tuple[Any, ...]], max_bytes: int) -> list[Turn]:
    """Return the turns of `rows`, as many as fit, at least one."""
    turns: list[Turn] = []
    size = 0
    for row in rows:
        turn = turn_of_row(db, chat, row)
        size += len(encode(turn))
        # At least one: a turn that is larger than the page must not end the pages before it.
        if turns and size > max_bytes:
            break
        turns.append(turn)
    return turns


def _page(db: Connection, chat: int, turns: list[Turn], line: _Line = _VISIBLE) -> TurnPage:
    if not turns:
        return TurnPage([], None, None)
    first, last = (_ordinal_of(db, chat, turn.id) for turn in (turns[0], turns[-1]))
    return TurnPage(
        _with_siblings(db, chat, turns),
        line.cursor(first) if _exists(db, chat, line, "<", first) else None,
        line.cursor(last) if _exists(db, chat, line, ">", last) else None,
    )


def _with_branches(db: Connection, chat: int, page: TurnPage) -> TurnPage:
    """Add to the turns of a page what follows their siblings; a request to a model needs none of it."""
    turns = [
        msgspec.structs.replace(turn, branches=[_branch(db, chat, id) for id in turn.siblings])
        if turn.siblings
        else turn
        for turn in page.turns
    ]
    return msgspec.structs.replace(page, turns=turns)


def _branch(db: Connection, chat: int, sibling: str) -> Branch:
    tip, ordinal, count = _tip(db, chat, sibling)
    query = "SELECT started_at FROM turns WHERE chat = ? AND ordinal IN (?, ?) ORDER BY ordinal"
    times = [row[0] for row in db.execute(query, (chat, _ordinal_of(db, chat, sibling), ordinal))]
    return Branch(turn_id=sibling, tip=tip, turns=count, started_at=times[0], last_activity=times[-1])


def _with_siblings(db: Connection, chat: int, turns: list[Turn]) -> list[Turn]:
    """Add a turn's siblings, which answer the same position in the chat: regenerated or edited versions,
    hidden or not."""
    shown = []
    for turn in turns:
        rows = db.execute(
            "SELECT id FROM turns INDEXED BY turns_by_parent WHERE chat = ? AND parent IS ? ORDER BY ordinal",
            (chat, turn.parent_turn_id),
        )
        siblings = [id for (id,) in rows if id != turn.id]
        shown.append(msgspec.structs.replace(turn, siblings=siblings) if siblings else turn)
    return shown


def turn_of_row(db: Connection, chat: int, row: tuple[Any, ...]) -> Turn:
    """Return the turn of a row, with its items from the journal."""
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
        items=fold_items(events),
        status=status,
        model=model,
        engine=engine,
        started_at=started,
        parent_turn_id=parent,
        reason=reason,
        error=stored_error(decode(error)) if error else None,
        usage=usage_of(decode(usage)) if usage else None if last else _usage_so_far(events),
        ended_at=ended,
        hidden=bool(hidden),
        context=sent_blocks(events),
        alone=is_alone(events),
    )


def _usage_so_far(events: list[StoredEvent]) -> Usage | None:
    """Return what the provider has reported for a running turn: the same as its end will report, even after a
    crash."""
    reports = [event for event in events if event.type == "usage.updated"]
    usage = usage_of(decode(reports[-1].data)["turn"]) if reports else Usage()
    return usage if usage != Usage() else None


def _exists(db: Connection, chat: int, line: _Line, comparison: str, ordinal: int) -> bool:
    return bool(_rows(db, chat, line, f"ordinal {comparison} :bound", ordinal, 1))


def _ordinal_of(db: Connection, chat: int, turn: str) -> int:
    (ordinal,) = db.execute("SELECT ordinal FROM turns WHERE chat = ? AND id = ?", (chat, turn)).fetchone()
    return int(ordinal)


def _parse(cursor: str) -> tuple[int, _Line]:
    """Return the ordinal of a cursor, and the turns that it is for."""
    kind, *numbers = cursor.split(".")
    are_numbers = all(digits.isdecimal() and len(digits) <= 15 for digits in numbers)
    if kind != "turn" or len(numbers) not in (1, 2) or not are_numbers:
        raise invalid_param("before/after", "a cursor of an earlier answer")
    return int(numbers[0]), _Line(int(numbers[1]) if len(numbers) == 2 else None)
