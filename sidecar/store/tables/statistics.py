"""Figures of a chat, a project or everything, read in one transaction: what is stored now, and what was
measured over time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from ...model.content import Usage
from ...model.figures import DayFigures, IndexFigures, ProjectFigures, Savings, Statistics, ToolFigures
from ..engine.sqlite import VERSION_INFO, Connection, DatabaseError, connect

MAX_DAYS = 30
"""Days with figures that are returned: a month fits a screen."""

MAX_TOOLS = 100
MAX_PROJECTS = 50
"""The busiest and newest ones: an overview, not a report."""

MEASURE_S = 2.0
"""How long measuring the index's size may take: some gigabytes from a warm cache."""

_BYTES = "octet_length({})" if VERSION_INFO >= (3, 43) else "length(CAST({} AS BLOB))"
"""The bytes of a value: the newer function does not read a long one."""

Sums = dict[str, float]
First = TypeVar("First", str, int)


class StatisticsScope(msgspec.Struct, frozen=True):
    """Whose figures: one chat's, those of a project under all its paths, or all."""

    chat: int | None = None
    paths: tuple[str, ...] | None = None

    def chats(self) -> tuple[str, tuple[object, ...]]:
        """Return the condition on `chats c`."""
        where, values = self._where("c.id", "c.project_path")
        return f"c.deleted = 0 AND {where}", values

    def figures(self) -> tuple[str, tuple[object, ...]]:
        return self._where("chat", "project")

    def index(self) -> tuple[str, tuple[object, ...]]:
        """Return the condition on `index_owners o`."""
        return self._where("o.chat", "o.project")

    def _where(self, chat: str, project: str) -> tuple[str, tuple[object, ...]]:
        if self.chat is not None:
            return f"{chat} = ?", (self.chat,)
        if self.paths is not None:
            return f"{project} IN ({', '.join('?' * len(self.paths))})", self.paths
        return "1", ()


def read_statistics(db: Connection, scope: StatisticsScope) -> Statistics:
    where, values = scope.chats()
    chats, turns, events, last = db.execute(
        "SELECT count(*), coalesce(sum(c.turns), 0), coalesce(sum(c.last_seq), 0), max(c.last_activity)"
        f" FROM chats c WHERE {where}",
        values,
    ).fetchone()
    (messages,) = db.execute(
        f"SELECT count(*) FROM messages m JOIN chats c ON c.id = m.chat WHERE {where}", values
    ).fetchone()
    blobs, blob_bytes = _blobs(db, scope)
    (pages,), (size,) = db.execute("PRAGMA page_count").fetchone(), db.execute("PRAGMA page_size").fetchone()
    sums = _sums(db, scope)
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
        tools=_tools(db, scope),
        days=_days(db, scope),
        projects=_projects(db, scope) if scope.chat is None else [],
        index=_index(db, scope),
    )


def index_bytes(path: str) -> int | None:
    """Return the bytes in the rows of the index. Reads much of the database on a separate connection, so that
    nothing waits for it; None when it takes too long."""
    db = connect(path)
    try:
        end = time.monotonic() + MEASURE_S
        # Called every 10,000 steps of the virtual machine; True ends the query with an error.
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
    """Return the bytes of texts and blobs in a table; numbers, about two bytes each on disk, are not counted."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    length = " + ".join(
        f"CASE WHEN typeof({c}) IN ('text', 'blob') THEN {_BYTES.format(c)} ELSE 0 END" for c in columns
    )
    return int(db.execute(f"SELECT coalesce(sum({length}), 0) FROM {table}").fetchone()[0])


def _index(db: Connection, scope: StatisticsScope) -> IndexFigures:
    where, values = scope.index()
    sources, chunks, size = db.execute(
        "SELECT count(*), coalesce(sum(s.chunks), 0), coalesce(sum(s.bytes), 0) FROM index_sources s"
        f" JOIN index_owners o ON o.id = s.owner WHERE {where}",
        values,
    ).fetchone()
    return IndexFigures(sources, chunks, size)


def _sums(db: Connection, scope: StatisticsScope) -> Sums:
    where, values = scope.figures()
    return dict(
        db.execute(f"SELECT name, sum(value) FROM figures WHERE {where} GROUP BY name", values).fetchall()
    )


def _tools(db: Connection, scope: StatisticsScope) -> list[ToolFigures]:
    where, values = scope.figures()
    rows = db.execute(
        f"SELECT tool, name, sum(value) FROM figures WHERE tool <> '' AND {where} GROUP BY tool, name", values
    )
    found = [
        ToolFigures(tool, _whole(sums, "calls") or 0, _savings(sums))
        for tool, sums in _sums_by_first_column(rows).items()
    ]
    found.sort(key=lambda tool: (-(tool.savings.tokens_saved or 0), -tool.calls, tool.name))
    return found[:MAX_TOOLS]


def _days(db: Connection, scope: StatisticsScope) -> list[DayFigures]:
    """Return the newest days with figures, oldest first."""
    where, values = scope.figures()
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
        for day, sums in sorted(_sums_by_first_column(rows).items())
    ]


def _projects(db: Connection, scope: StatisticsScope) -> list[ProjectFigures]:
    """Return the projects of the scope, newest first; two spellings of one path are one project."""
    ids: dict[str, str] = dict(db.execute("SELECT path, hash FROM projects").fetchall())
    where, values = scope.chats()
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
    where, values = scope.figures()
    measured: dict[str, Sums] = {}
    for path, sums in _sums_by_first_column(
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


def _blobs(db: Connection, scope: StatisticsScope) -> tuple[int, int]:
    """Return the number and size of the blobs that the chats use; for everything, of all stored blobs."""
    if scope.chat is None and scope.paths is None:
        count, size = db.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM blobs INDEXED BY blobs_by_age"
        ).fetchone()
        return count, size
    where, values = scope.chats()
    used = f"SELECT u.blob FROM blob_uses u JOIN chats c ON c.id = u.chat WHERE {where}"
    query = f"SELECT count(*), coalesce(sum(length(data)), 0) FROM blobs WHERE id IN ({used})"
    count, size = db.execute(query, values).fetchone()
    return count, size


def _sums_by_first_column(rows: Iterable[tuple[First, str, float]]) -> dict[First, Sums]:
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
