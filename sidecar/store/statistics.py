"""Figures of a chat, a project or all, read in one snapshot: what is there now, and what was measured by and by."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from ..model.content import Usage
from ..model.figures import DayFigures, IndexFigures, ProjectFigures, Savings, Statistics, ToolFigures
from .sqlite import Connection, DatabaseError, connect

MAX_DAYS = 30
"""Days with figures that are told: a month fits a screen."""

MAX_TOOLS = 100
MAX_PROJECTS = 50
"""The busiest and the newest ones: more would be a report, not a glance."""

MEASURE_S = 2.0
"""How long the index's size may take to measure: some gigabytes from a warm cache."""

Sums = dict[str, float]
First = TypeVar("First", str, int)


class Of(msgspec.Struct, frozen=True):
    """Whose figures: one chat's, those of a project by all its paths, or all."""

    chat: int | None = None
    paths: tuple[str, ...] | None = None

    def chats(self) -> tuple[str, tuple[object, ...]]:
        """The condition on `chats c`."""
        where, values = self._where("c.id", "c.project_path")
        return f"c.deleted = 0 AND {where}", values

    def figures(self) -> tuple[str, tuple[object, ...]]:
        return self._where("chat", "project")

    def index(self) -> tuple[str, tuple[object, ...]]:
        """The condition on `index_owners o`."""
        return self._where("o.chat", "o.project")

    def _where(self, chat: str, project: str) -> tuple[str, tuple[object, ...]]:
        if self.chat is not None:
            return f"{chat} = ?", (self.chat,)
        if self.paths is not None:
            return f"{project} IN ({', '.join('?' * len(self.paths))})", self.paths
        return "1", ()


def read(db: Connection, of: Of) -> Statistics:
    where, values = of.chats()
    chats, turns, events, last = db.execute(
        "SELECT count(*), coalesce(sum(c.turns), 0), coalesce(sum(c.last_seq), 0), max(c.last_activity)"
        f" FROM chats c WHERE {where}",
        values,
    ).fetchone()
    (messages,) = db.execute(
        f"SELECT count(*) FROM messages m JOIN chats c ON c.id = m.chat WHERE {where}", values
    ).fetchone()
    blobs, blob_bytes = _blobs(db, of)
    (pages,), (size,) = db.execute("PRAGMA page_count").fetchone(), db.execute("PRAGMA page_size").fetchone()
    sums = _sums(db, of)
    return Statistics(
        chats=chats,
        turns=turns,
        events=events,
        messages=messages,
        blobs=blobs,
        blob_bytes=blob_bytes,
        database_bytes=pages * size,
        last_activity=last,
        purged_chats=_whole(sums, "purgedChats") or 0,
        purged_turns=_whole(sums, "purgedTurns") or 0,
        purged_events=_whole(sums, "purgedEvents") or 0,
        usage=_usage(sums),
        counted_turns=_whole(sums, "countedTurns") or 0,
        priced_turns=_whole(sums, "pricedTurns") or 0,
        savings=_savings(sums),
        searches=_whole(sums, "searches") or 0,
        fetches=_whole(sums, "fetches"),
        fetch_hits=_whole(sums, "fetchHits"),
        compactions=_whole(sums, "compactions") or 0,
        compaction_tokens=_whole(sums, "compactionTokens") or 0,
        tools=_tools(db, of),
        days=_days(db, of),
        projects=_projects(db, of) if of.chat is None else [],
        index=_index(db, of),
    )


def index_bytes(path: str) -> int | None:
    """What the index takes of the database: the bytes in its rows. Reads much of it, on a connection of its own, so
    that nobody waits; None when that takes too long."""
    db = connect(path)
    try:
        end = time.monotonic() + MEASURE_S
        db.set_progress_handler(lambda: time.monotonic() > end, 10_000)
        db.execute("PRAGMA query_only = ON")
        tables = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'index\\_%' ESCAPE '\\'"
            " AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
        ).fetchall()
        return sum(_row_bytes(db, name) for (name,) in tables)
    except DatabaseError:
        return None
    finally:
        db.close()


def _row_bytes(db: Connection, table: str) -> int:
    """The bytes of texts and blobs in a table; of numbers, some two bytes each on the disk, nothing is counted."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    length = " + ".join(
        f"CASE WHEN typeof({c}) IN ('text', 'blob') THEN octet_length({c}) ELSE 0 END" for c in columns
    )
    return int(db.execute(f"SELECT coalesce(sum({length}), 0) FROM {table}").fetchone()[0])


def _index(db: Connection, of: Of) -> IndexFigures:
    where, values = of.index()
    sources, chunks, size = db.execute(
        "SELECT count(*), coalesce(sum(s.chunks), 0), coalesce(sum(s.bytes), 0) FROM index_sources s"
        f" JOIN index_owners o ON o.id = s.owner WHERE {where}",
        values,
    ).fetchone()
    return IndexFigures(sources, chunks, size)


def _sums(db: Connection, of: Of) -> Sums:
    where, values = of.figures()
    return dict(
        db.execute(f"SELECT name, sum(value) FROM figures WHERE {where} GROUP BY name", values).fetchall()
    )


def _tools(db: Connection, of: Of) -> list[ToolFigures]:
    where, values = of.figures()
    rows = db.execute(
        f"SELECT tool, name, sum(value) FROM figures WHERE tool <> '' AND {where} GROUP BY tool, name", values
    )
    found = [
        ToolFigures(tool, _whole(sums, "calls") or 0, _savings(sums))
        for tool, sums in _by_first(rows).items()
    ]
    found.sort(key=lambda tool: (-(tool.savings.kept_out or 0), -tool.calls, tool.name))
    return found[:MAX_TOOLS]


def _days(db: Connection, of: Of) -> list[DayFigures]:
    """The newest days with figures, the oldest of them first."""
    where, values = of.figures()
    newest = f"SELECT DISTINCT day FROM figures WHERE {where} ORDER BY day DESC LIMIT {MAX_DAYS}"
    rows = db.execute(
        f"SELECT day, name, sum(value) FROM figures WHERE {where} AND day IN ({newest}) GROUP BY day, name",
        (*values, *values),
    )
    return [
        DayFigures(
            day,
            _whole(sums, "inputTokens"),
            _whole(sums, "outputTokens"),
            sums.get("cost"),
            _savings(sums),
        )
        for day, sums in sorted(_by_first(rows).items())
    ]


def _projects(db: Connection, of: Of) -> list[ProjectFigures]:
    """Those of the scope, the newest first; two spellings of one path are one project."""
    ids: dict[str, str] = dict(db.execute("SELECT path, hash FROM projects").fetchall())
    where, values = of.chats()
    rows = db.execute(
        "SELECT c.project_path, count(*), sum(c.turns), sum(c.last_seq), max(c.last_activity) FROM chats c"
        f" WHERE {where} AND c.project_path IS NOT NULL GROUP BY c.project_path ORDER BY max(c.last_activity)",
        values,
    ).fetchall()
    shown = {ids.get(path, path): path for path, *_ in rows}
    counts: dict[str, list[int]] = {}
    for path, *figures in rows:
        known = counts.setdefault(ids.get(path, path), [0, 0, 0, 0])
        counts[ids.get(path, path)] = [a + b for a, b in zip(known[:3], figures, strict=False)] + [figures[3]]
    where, values = of.figures()
    measured: dict[str, Sums] = {}
    for path, sums in _by_first(
        db.execute(
            f"SELECT project, name, sum(value) FROM figures WHERE project <> '' AND {where} GROUP BY 1, 2",
            values,
        )
    ).items():
        id = ids.get(path, path)
        shown.setdefault(id, path)
        _merge(measured.setdefault(id, {}), sums)
    found = [_project(path, counts.get(id), measured.get(id, {})) for id, path in shown.items()]
    found.sort(key=lambda project: (-(project.last_activity or 0), project.path))
    return found[:MAX_PROJECTS]


def _project(path: str, counts: list[int] | None, sums: Sums) -> ProjectFigures:
    chats, turns, events, last = counts or (0, 0, 0, None)
    usage = _usage(sums)
    return ProjectFigures(
        path,
        chats,
        turns,
        events,
        last,
        usage.input_tokens,
        usage.output_tokens,
        usage.cost,
        _savings(sums),
    )


def _blobs(db: Connection, of: Of) -> tuple[int, int]:
    """How many blobs the chats use and how large they are; of all, every one that is kept."""
    if of.chat is None and of.paths is None:
        count, size = db.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM blobs INDEXED BY blobs_by_age"
        ).fetchone()
        return count, size
    where, values = of.chats()
    used = f"SELECT u.blob FROM blob_uses u JOIN chats c ON c.id = u.chat WHERE {where}"
    query = f"SELECT count(*), coalesce(sum(length(data)), 0) FROM blobs WHERE id IN ({used})"
    count, size = db.execute(query, values).fetchone()
    return count, size


def _by_first(rows: Iterable[tuple[First, str, float]]) -> dict[First, Sums]:
    found: dict[First, Sums] = {}
    for first, name, value in rows:
        found.setdefault(first, {})[name] = value
    return found


def _merge(into: Sums, sums: Sums) -> None:
    for name, value in sums.items():
        into[name] = into.get(name, 0) + value


def _usage(sums: Sums) -> Usage:
    return Usage(
        input_tokens=_whole(sums, "inputTokens"),
        output_tokens=_whole(sums, "outputTokens"),
        cached_tokens=_whole(sums, "cachedTokens"),
        cost=sums.get("cost"),
    )


def _savings(sums: Sums) -> Savings:
    return Savings(_whole(sums, "captured"), _whole(sums, "sent"), _whole(sums, "returned"))


def _whole(sums: Sums, name: str) -> int | None:
    value = sums.get(name)
    return None if value is None else int(value)
