"""Compactions, standing preferences, measured token ratios and the last use of rules: what keeps a chat
within its context window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model.content import SentBlock
from ...model.events import EventData, decode, encode
from ...model.figures import RuleUse
from ..engine.sqlite import Connection
from . import refusals


class StoredCompaction(msgspec.Struct, frozen=True):
    """What replaces a chat's older turns: turns up to `summarised` by a summary, tool outputs up to `masked`
    by references, and files attached to turns up to `gathered` by the copies in `files`. The values are
    ordinals of turns."""

    id: str
    seq: int
    summarised: str | None
    masked: str | None
    summarised_ordinal: int
    masked_ordinal: int
    summary: dict[str, Any] | None
    files: list[SentBlock] = []
    gathered: str | None = None


_CURRENT = """
SELECT c.id, c.seq, c.summarised, c.masked, coalesce(s.ordinal, 0), coalesce(m.ordinal, 0), c.summary, c.data
FROM compactions c
LEFT JOIN turns s ON s.chat = c.chat AND s.id = c.summarised
LEFT JOIN turns m ON m.chat = c.chat AND m.id = c.masked
WHERE c.chat = ? AND c.undone = 0 AND coalesce(s.hidden, 0) = 0 AND coalesce(m.hidden, 0) = 0
ORDER BY c.seq DESC LIMIT 1
"""


def current(db: Connection, chat: int) -> StoredCompaction | None:
    """Return the compaction in force: the newest that was not undone and whose turns are visible."""
    row = db.execute(_CURRENT, (chat,)).fetchone()
    if row is None:
        return None
    id, seq, summarised, masked, to_summarised, to_masked, summary, data = row
    kept, also = decode(summary) if summary else None, decode(data)
    files = msgspec.convert(also.get("files") or [], list[SentBlock])
    return StoredCompaction(
        id, seq, summarised, masked, to_summarised, to_masked, kept, files, also.get("gathered")
    )


def put(db: Connection, chat: int, seq: int, data: EventData) -> None:
    summary = data.get("state")
    db.execute(
        "INSERT OR REPLACE INTO compactions (chat, seq, id, summarised, masked, summary, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            chat,
            seq,
            data["compactionId"],
            data.get("summarised"),
            data.get("masked"),
            encode(summary) if summary else None,
            encode(
                {"item": data["item"], **{key: data[key] for key in ("files", "gathered") if key in data}}
            ),
        ),
    )


def undo(db: Connection, chat: int, id: str) -> dict[str, Any] | None:
    """Undo a compaction and return its item; None when it was not in force."""
    row = db.execute(
        "UPDATE compactions SET undone = 1 WHERE chat = ? AND id = ? AND undone = 0 RETURNING data",
        (chat, id),
    ).fetchone()
    kept: dict[str, Any] = decode(row[0]) if row else {}
    return kept.get("item", kept) or None  # an older version stored only the item


def was_undone(db: Connection, chat: int) -> bool:
    """Return whether the newest compaction was undone."""
    row = db.execute(
        "SELECT undone FROM compactions WHERE chat = ? ORDER BY seq DESC LIMIT 1", (chat,)
    ).fetchone()
    return bool(row and row[0])


def calibration(db: Connection, model: str) -> float:
    row = db.execute("SELECT factor FROM calibrations WHERE model = ?", (model,)).fetchone()
    return float(row[0]) if row else 1.0


def put_calibration(db: Connection, model: str, factor: float) -> None:
    db.execute("INSERT OR REPLACE INTO calibrations (model, factor) VALUES (?, ?)", (model, factor))


def rule_figures(db: Connection, project: str) -> Mapping[str, RuleUse]:
    row = db.execute("SELECT data FROM rule_figures WHERE project = ?", (project,)).fetchone()
    figures: Mapping[str, RuleUse] = decode(row[0]) if row else {}
    return figures


def put_rule_figures(db: Connection, project: str, figures: Mapping[str, RuleUse]) -> None:
    db.execute(
        "INSERT OR REPLACE INTO rule_figures (project, data) VALUES (?, ?)", (project, encode(figures))
    )


def put_standing(db: Connection, chat: int, turn: str, texts: list[str]) -> None:
    """Store preferences that apply from this turn on; one stated before moves to this turn."""
    db.executemany(
        "INSERT OR REPLACE INTO standing (chat, turn, text) VALUES (?, ?, ?)",
        [(chat, turn, text) for text in texts],
    )


def standing(db: Connection, chat: int) -> list[str]:
    """Return the user's preferences from the visible turns, newest first."""
    rows = db.execute(
        "SELECT s.text FROM standing s JOIN turns t ON t.chat = s.chat AND t.id = s.turn"
        f" WHERE s.chat = ? AND t.hidden = 0 AND {refusals.sent_condition('t')} ORDER BY t.ordinal DESC, s.text",
        (chat,),
    )
    return [text for (text,) in rows]
