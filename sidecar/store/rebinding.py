"""A project's folder was moved: all rows that name its old path name the new one, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.chats import Chat, ChatKey
from ..model.events import NewEvent
from . import appending, figures, index_custody, projects
from .projections import touch
from .projects import Project
from .sqlite import Connection


class Move(msgspec.Struct, frozen=True):
    """A chat that goes along: what its journal says of it, how many of its files in view that moves, and the key
    that it has now, if that is another."""

    chat: Chat
    events: list[NewEvent]
    files: int
    key: ChatKey | None


class Rebound(msgspec.Struct, frozen=True):
    """What moved. `renamed` are the chats that got a new key."""

    renamed: list[int]
    rules: int
    rules_left: int
    sources: int
    figures: int
    was_trusted: bool
    trusted: bool


def rebind(
    db: Connection, old: Sequence[str], new: Project, moves: Sequence[Move], *, gone: bool, now: int
) -> Rebound:
    """Move what belongs to the old paths. `gone` says that the old folder is not there any more."""
    projects.note(db, new, now)
    was_trusted, trusted = _trust(db, old), _trust(db, [new.path])
    renamed = [move.chat.id for move in moves if move.key and _rename(db, move.chat.id, move.key)]
    for move in moves:
        appending.append(db, move.chat.id, move.chat.last_seq, move.events, now)
        touch(db, move.chat.id)
    rules, left = _move_rules(db, old, new.path, gone)
    moved = sources = 0
    for path in old:
        moved += figures.move(db, path, new.path)
        sources += index_custody.move(db, path, new.path)
        db.execute("UPDATE OR IGNORE rule_figures SET project = ? WHERE project = ?", (new.path, path))
        db.execute("DELETE FROM rule_figures WHERE project = ?", (path,))
        # Whoever makes another folder at the old path must not find it trusted.
        db.execute(
            "UPDATE projects SET moved_to = ?, trusted = CASE WHEN ? THEN 0 ELSE trusted END, changed_at = ?"
            " WHERE path = ?",
            (new.path, gone, now, path),
        )
    return Rebound(renamed, rules, left, sources, moved, was_trusted, trusted)


def _trust(db: Connection, paths: Sequence[str]) -> bool:
    query = f"SELECT max(trusted) FROM projects WHERE path IN ({', '.join('?' * len(paths))})"
    return bool(db.execute(query, tuple(paths)).fetchone()[0])


def _rename(db: Connection, chat: int, key: ChatKey) -> bool:
    """Give a chat that was keyed by its folder the new folder's key, unless that has a chat of its own."""
    db.execute("DELETE FROM chats WHERE session_id = ? AND deleted = 1", (key.session_id,))
    values = (key.session_id, key.value, chat)
    return db.execute("UPDATE OR IGNORE chats SET session_id = ?, key = ? WHERE id = ?", values).rowcount > 0


def _move_rules(db: Connection, old: Sequence[str], new: str, gone: bool) -> tuple[int, int]:
    """Move the rules that the new folder does not have yet. One that allows something stays with a folder that is
    still there: it was given for that one."""
    marks = ", ".join("?" * len(old))
    which = f"FROM permission_rules WHERE scope = 'project' AND project IN ({marks})"
    kept = "" if gone else " AND effect <> 'allow'"
    same = (
        " AND EXISTS (SELECT 1 FROM permission_rules n WHERE n.project = ? AND n.effect = permission_rules.effect"
        " AND n.kind = permission_rules.kind AND n.pattern = permission_rules.pattern"
        " AND n.folder IS permission_rules.folder)"
    )
    db.execute(f"DELETE {which}{kept}{same}", (*old, new))
    moved = db.execute(
        f"UPDATE permission_rules SET project = ? WHERE scope = 'project' AND project IN ({marks}){kept}",
        (new, *old),
    ).rowcount
    (left,) = db.execute(f"SELECT count(*) {which}", tuple(old)).fetchone()
    return moved, left
