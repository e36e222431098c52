"""What was salvaged of a chat when its database was damaged, as reported when the chat is opened."""

from __future__ import annotations

import msgspec

from ...model.events import decode
from ..engine.sqlite import Connection


class Salvage(msgspec.Struct, frozen=True):
    """`gaps` are the first and last seqs of what was lost, in the old numbering; `damaged` is the file that
    was kept."""

    at: int
    saved: int
    lost: int
    gaps: list[tuple[int, int]]
    damaged: str


def salvage_of_chat(db: Connection, chat: int) -> Salvage | None:
    """Return what was salvaged of a chat, until a turn is added."""
    row = db.execute(
        "SELECT r.ts, r.saved, r.lost, r.data FROM recoveries r JOIN chats c ON c.id = r.chat AND c.turns = r.turns"
        " WHERE r.chat = ?",
        (chat,),
    ).fetchone()
    if row is None:
        return None
    data = decode(row[3])
    gaps = [(int(start), int(end)) for start, end in data["gaps"]]
    return Salvage(row[0], row[1], row[2], gaps, data["damaged"])
