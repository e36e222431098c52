"""Moves a project to a new folder: replaces its old path in all rows, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.chats import Chat, ChatKey
from ..model.events import NewEvent
from .engine.sqlite import Connection
from .search import index_owners
from .tables import appending, figures, projects
from .tables.projections import touch
from .tables.projects import StoredProject


class ChatMove(msgspec.Struct, frozen=True):
    """A chat that moves: its journal event, the number of its open files that move, and its new key if that
    changes."""

    chat: Chat
    events: list[NewEvent]
    files: int
    key: ChatKey | None


class RebindCounts(msgspec.Struct, frozen=True):
    """Counts of what was moved. `renamed` are the chats that got a new key."""

    renamed: list[int]
    rules: int
    rules_left: int
    sources: int
    figures: int
    was_trusted: bool
    trusted: bool


def rebind(
    db: Connection, old: Sequence[str], new: StoredProject, moves: Sequence[ChatMove], *, gone: bool, now: int
) -> RebindCounts:
    """Move everything of the old paths. `gone` says that the old folder no longer exists."""
    projects.register(db, new, now)
    was_trusted, trusted = _move_trust(db, old), _move_trust(db, [new.path])
    renamed = [move.chat.id for move in moves if move.key and _rekey(db, move.chat.id, move.key)]
    for move in moves:
        appending.append(db, move.chat.id, move.chat.last_seq, move.events, now)
        touch(db, move.chat.id)
    rules, left = _move_rules(db, old, new.path, gone)
    moved = sources = 0
    for path in old:
        moved += figures.move(db, path, new.path)
        sources += index_owners.move(db, path, new.path)
        db.execute("UPDATE OR IGNORE rule_figures SET project = ? WHERE project = ?", (new.path, path))
        db.execute("DELETE FROM rule_figures WHERE project = ?", (path,))
        # A new folder at the old path must not be trusted.
        db.execute(
            "UPDATE projects SET moved_to = ?, trusted = CASE WHEN ? THEN 0 ELSE trusted END, changed_at = ?"
            " WHERE path = ?",
            (new.path, gone, now, path),
        )
    return RebindCounts(renamed, rules, left, sources, moved, was_trusted, trusted)


def _move_trust(db: Connection, paths: Sequence[str]) -> bool:
    query = f"SELECT max(trusted) FROM projects WHERE path IN ({', '.join('?' * len(paths))})"
    return bool(db.execute(query, tuple(paths)).fetchone()[0])


def _rekey(db: Connection, chat: int, key: ChatKey) -> bool:
    """Give a chat that was keyed by its folder the key of the new folder, unless that folder has a chat
    already."""
    db.execute("DELETE FROM chats WHERE session_id = ? AND deleted = 1", (key.session_id,))
    values = (key.session_id, key.value, chat)
    return db.execute("UPDATE OR IGNORE chats SET session_id = ?, key = ? WHERE id = ?", values).rowcount > 0


def _move_rules(db: Connection, old: Sequence[str], new: str, gone: bool) -> tuple[int, int]:
    """Move the rules that the new folder does not have yet. An allow rule stays with an old folder that still
    exists, because the user gave it for that folder."""
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
