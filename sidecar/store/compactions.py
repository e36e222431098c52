"""What keeps a chat in its window: compactions, standing wishes, what counting has learned, how fresh rules are."""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.content import Kept
from ..model.events import decode, encode
from .sqlite import Connection


class Compaction(msgspec.Struct, frozen=True):
    """What stands for a chat's older turns: those up to `summarised` by a summary, tool outputs up to `masked` by
    references, and files that came with turns up to `gathered` by the copies in `files`. The ordinals are those of
    the turns."""

    id: str
    seq: int
    summarised: str | None
    masked: str | None
    summarised_ordinal: int
    masked_ordinal: int
    summary: dict[str, Any] | None
    files: list[Kept] = []
    gathered: str | None = None


_CURRENT = """
SELECT c.id, c.seq, c.summarised, c.masked, coalesce(s.ordinal, 0), coalesce(m.ordinal, 0), c.summary, c.data
FROM compactions c
LEFT JOIN turns s ON s.chat = c.chat AND s.id = c.summarised
LEFT JOIN turns m ON m.chat = c.chat AND m.id = c.masked
WHERE c.chat = ? AND c.undone = 0 AND coalesce(s.hidden, 0) = 0 AND coalesce(m.hidden, 0) = 0
ORDER BY c.seq DESC LIMIT 1
"""


def current(db: Connection, chat: int) -> Compaction | None:
    """The compaction that holds now: the newest that was not undone and whose turns are in view."""
    row = db.execute(_CURRENT, (chat,)).fetchone()
    if row is None:
        return None
    id, seq, summarised, masked, to_summarised, to_masked, summary, data = row
    kept, also = decode(summary) if summary else None, decode(data)
    files = msgspec.convert(also.get("files") or [], list[Kept])
    return Compaction(
        id, seq, summarised, masked, to_summarised, to_masked, kept, files, also.get("gathered")
    )


def put(db: Connection, chat: int, seq: int, data: dict[str, Any]) -> None:
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
    """Let it count no more, and return its item; None when it did not count before."""
    row = db.execute(
        "UPDATE compactions SET undone = 1 WHERE chat = ? AND id = ? AND undone = 0 RETURNING data",
        (chat, id),
    ).fetchone()
    kept: dict[str, Any] = decode(row[0]) if row else {}
    return kept.get("item", kept) or None  # an older program kept the item alone


def was_undone(db: Connection, chat: int) -> bool:
    """Whether the newest compaction was taken back."""
    row = db.execute(
        "SELECT undone FROM compactions WHERE chat = ? ORDER BY seq DESC LIMIT 1", (chat,)
    ).fetchone()
    return bool(row and row[0])


def calibration(db: Connection, model: str) -> float:
    row = db.execute("SELECT factor FROM calibrations WHERE model = ?", (model,)).fetchone()
    return float(row[0]) if row else 1.0


def put_calibration(db: Connection, model: str, factor: float) -> None:
    db.execute("INSERT OR REPLACE INTO calibrations (model, factor) VALUES (?, ?)", (model, factor))


def rule_figures(db: Connection, project: str) -> dict[str, Any]:
    row = db.execute("SELECT data FROM rule_figures WHERE project = ?", (project,)).fetchone()
    figures: dict[str, Any] = decode(row[0]) if row else {}
    return figures


def put_rule_figures(db: Connection, project: str, figures: dict[str, Any]) -> None:
    db.execute(
        "INSERT OR REPLACE INTO rule_figures (project, data) VALUES (?, ?)", (project, encode(figures))
    )


def put_standing(db: Connection, chat: int, turn: str, texts: list[str]) -> None:
    """Wishes that hold from this turn on; one that was said before moves to it."""
    db.executemany(
        "INSERT OR REPLACE INTO standing (chat, turn, text) VALUES (?, ?, ?)",
        [(chat, turn, text) for text in texts],
    )


def standing(db: Connection, chat: int) -> list[str]:
    """The user's wishes of the turns in view, the newest first."""
    rows = db.execute(
        "SELECT s.text FROM standing s JOIN turns t ON t.chat = s.chat AND t.id = s.turn"
        " WHERE s.chat = ? AND t.hidden = 0 ORDER BY t.ordinal DESC, s.text",
        (chat,),
    )
    return [text for (text,) in rows]
