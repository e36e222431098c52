"""Finds the chunks and lines of the index that match a query. Does not decide what is worth showing.

Ranges of positions restrict the owners before a word is looked up; MATCH gets only quoted tokens. Every query
is bounded, so that a common word takes no longer than a rare one: for a word that is everywhere, only the
newest lines are read, and the lines that contain it together with the others.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...model.events import encode
from ...model.index import ChunkCandidate, IndexChunk, QueryPlan, SourceKind
from ..engine.sqlite import Connection

OWNER_BITS = 40
"""Of a position: an owner has 2 ** 40 code points, and a position is never reused."""

MAX_MATCHES = 500
"""Lines read per term, newest first. A term that occurs in more lines is common."""

BEST_LINES = 28
"""Lines that are read and ranked; a result shows about a dozen."""

BEST_CHUNKS = 10
"""Chunks ranked by all their words, in addition to those of the best lines."""

MAX_RANGES = 64
"""Ranges that are searched one by one; more are merged into one range, and results of other owners are
filtered out."""

MAX_LEFT_OUT = 4
"""Common terms of which one may be missing; with more, a query for each would take too long."""

ENOUGH_LINES = 12
"""When so many lines contain all common terms, lines with fewer terms are not searched."""

SPELLED_ROWS = 24
"""Rows of distinct words read for one word."""

ReadRanges = Callable[[Connection, Sequence[tuple[int, int, int]]], list[str]]
"""Returns ranges of texts, given as source, start and end."""


class SearchBounds(msgspec.Struct, frozen=True):
    """Which sources are searched; optionally only some of them. `source` is an id or a whole label.

    A chat: its own. A project: its own and those of its chats. Both: the chat's own and the project's own,
    without those of the project's other chats. Neither: all.
    """

    chat: int | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    kind: SourceKind | None = None

    @property
    def whole_owners(self) -> bool:
        return self.source is self.tool is self.kind is None


def conditions(bounds: SearchBounds) -> tuple[str, list[Any]]:
    """Return the SQL condition for sources `s` and owners `o`."""
    owned, values = of_owners(bounds.chat, bounds.project)
    where = [owned]
    for column, value in (("s.tool", bounds.tool), ("s.kind", bounds.kind)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if bounds.source is not None:
        where.append("(s.key = ? OR s.label = ?)")
        values += [bounds.source, bounds.source]
    return " AND ".join(where), values


def of_owners(chat: int | None, project: str | None) -> tuple[str, list[Any]]:
    """Return the SQL condition for the owners `o` that `SearchBounds` describes."""
    if chat is not None and project is not None:
        return "(o.chat = ? OR (o.chat IS NULL AND o.project = ?))", [chat, project]
    if chat is not None:
        return "o.chat = ?", [chat]
    if project is not None:
        return "o.project = ?", [project]
    return "1", []


def find_candidates(
    db: Connection, plan: QueryPlan, bounds: SearchBounds, read: ReadRanges
) -> tuple[list[ChunkCandidate], tuple[int, ...], int]:
    """Return candidates, the number of lines with each term, and the number of all lines."""
    reach = _SearchRange.of(db, bounds)
    if not reach.ranges or not plan.terms:
        return [], (0,) * len(plan.terms), 0
    finder = _Finder(db, plan, reach)
    lines = finder.lines()
    chunks = finder.chunks()
    return _candidates(db, [*lines, *chunks], read), finder.frequency, reach.total


def spellings(db: Connection, pieces: Sequence[str], bounds: SearchBounds) -> list[str]:
    """Return rows of words that contain all of the pieces, each at least three letters; newest first."""
    reach = _SearchRange.of(db, bounds)
    match = " AND ".join(quoted(piece) for piece in pieces)
    places = reach.places(db, "index_letters", match, SPELLED_ROWS)
    query = "SELECT words FROM index_spelled WHERE id = ?"
    return [words for place in places for (words,) in db.execute(query, (place,))]


def quoted(token: str) -> str:
    """Quote a token for MATCH, whatever it contains."""
    return '"' + token.replace('"', '""') + '"'


class _SearchRange(msgspec.Struct, frozen=True):
    """Ranges of positions, newest first; with `owners`, only theirs. `total` is the number of lines."""

    ranges: list[tuple[int, int]]
    total: int
    owners: str | None = None

    @staticmethod
    def of(db: Connection, bounds: SearchBounds) -> _SearchRange:
        where, values = conditions(bounds)
        # The positions of an owner are one range, whatever its number of texts: the cheapest condition for
        # the index.
        if bounds.whole_owners:
            rows = db.execute(
                "SELECT o.id << 40, o.used,"
                " coalesce((SELECT sum(s.lines) FROM index_sources s WHERE s.owner = o.id), 0)"
                f" FROM index_owners o WHERE {where} ORDER BY o.id DESC",
                values,
            ).fetchall()
        else:
            rows = db.execute(
                "SELECT s.base, s.size, s.lines FROM index_sources s JOIN index_owners o ON o.id = s.owner"
                f" WHERE {where} ORDER BY s.base DESC",
                values,
            ).fetchall()
        total = sum(lines for _, _, lines in rows)
        ranges = [(base, base + size) for base, size, _ in rows]
        if bounds.whole_owners and len(ranges) > 1:
            everyone = bounds.chat is None and bounds.project is None
            owners = None if everyone else encode([base >> OWNER_BITS for base, _ in ranges]).decode()
            # One wide range, and the owner of each hit is checked: a query per range would cost more than the
            # hits that are thrown away.
            if everyone or len(ranges) > MAX_RANGES:
                return _SearchRange([(ranges[-1][0], ranges[0][1])], total, owners)
        return _SearchRange(ranges[:MAX_RANGES], total)

    def places(self, db: Connection, table: str, match: str, limit: int) -> list[int]:
        """Return the positions of matches, newest first."""
        mine = "" if self.owners is None else " AND (rowid >> 40) IN (SELECT value FROM json_each(?5))"
        query = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3{mine}"
            " ORDER BY rowid DESC LIMIT ?4"
        )
        found: list[int] = []
        for low, high in self.ranges:
            values = (match, low, high, limit - len(found))
            rows = db.execute(query, values if self.owners is None else (*values, self.owners))
            # Ranges come newest first, and so do the rows of each: the first `limit` are the newest.
            found += [place for (place,) in rows]
            if len(found) >= limit:
                break
        return found

    def share(self, place: int) -> float:
        """Return which fraction of all positions is between the newest and this one."""
        sizes = [high - low + 1 for low, high in self.ranges]
        # Of the ranges that are newer than the position all, of its own range the newer part: matches were
        # found newest first, so they fill this share.
        passed = sum(high - max(low, place) + 1 for low, high in self.ranges if place <= high)
        return max(passed / sum(sizes), 1e-9)


class _Finder:
    """Looks up the terms of one plan. What every line or chunk must contain is part of every query."""

    def __init__(self, db: Connection, plan: QueryPlan, reach: _SearchRange) -> None:
        self._db = db
        self._reach = reach
        self._terms = plan.terms
        self._needed = f" AND ({plan.needed})" if plan.needed else ""
        self._barred = f" NOT ({plan.barred})" if plan.barred else ""
        self._found = [self._places("index_lines", term.match, MAX_MATCHES) for term in plan.terms]
        self.frequency = tuple(self._count_lines(places) for places in self._found)
        self._worth = [
            term.weight * math.log(1 + (reach.total + 0.5) / (often + 0.5))
            for term, often in zip(plan.terms, self.frequency, strict=True)
        ]
        self._rare = [at for at, places in enumerate(self._found) if 0 < len(places) < MAX_MATCHES]
        self._common = [at for at, places in enumerate(self._found) if len(places) >= MAX_MATCHES]

    def lines(self) -> list[int]:
        """Return the lines with the rarest terms, best first and newer before older."""
        held: dict[int, float] = {}
        for at in self._rare:
            worth = self._worth[at]
            for place in self._found[at]:
                held[place] = held.get(place, 0.0) + worth
        self._add_common(held)
        return [place for _, place in heapq.nlargest(BEST_LINES, ((worth, at) for at, worth in held.items()))]

    def chunks(self) -> list[int]:
        """Return the chunks with the rarest terms, best first."""
        held: dict[int, float] = {}
        for at in self._rare:
            for place in self._places("index_words", self._terms[at].match, MAX_MATCHES):
                held[place] = held.get(place, 0.0) + self._worth[at]
        rare = self._any_rare()
        for at in self._common:
            match = f"({rare}) AND {self._terms[at].match}" if rare else self._all(self._common)
            for place in self._places("index_words", match, MAX_MATCHES):
                held[place] = held.get(place, 0.0) + self._worth[at]
            # Without a rare term all common ones are required at once, so one query has found what there is.
            if not rare:
                break
        return [place for _, place in heapq.nlargest(BEST_CHUNKS, ((w, at) for at, w in held.items()))]

    def _add_common(self, held: dict[int, float]) -> None:
        """Add the weight of common terms to lines with rare ones, and add lines with nearly all common ones."""
        rare = self._any_rare()
        if rare:
            for at in self._common:
                match = f"({rare}) AND {self._terms[at].match}"
                for place in self._places("index_lines", match, 2 * MAX_MATCHES):
                    if place in held:
                        held[place] += self._worth[at]
        for group in self._groups():
            worth = sum(self._worth[at] for at in group)
            for place in self._places("index_lines", self._all(group), MAX_MATCHES):
                # Not added: those with a rare term got the weights of these terms above.
                held.setdefault(place, worth)

    def _groups(self) -> list[list[int]]:
        """Return groups of common terms that are searched together: all; those that are significant; and
        these without one each, while few lines were found."""
        common = self._common
        telling = [at for at in common if self._terms[at].weight >= 1] or common
        if not common or len(telling) < 2 or self._are_enough(common):
            return [common] if common else []
        if len(telling) > MAX_LEFT_OUT or self._are_enough(telling):
            return [common, telling]
        return [common, telling, *([at for at in telling if at != left] for left in telling)]

    def _are_enough(self, group: Sequence[int]) -> bool:
        return len(self._places("index_lines", self._all(group), ENOUGH_LINES)) == ENOUGH_LINES

    def _all(self, group: Sequence[int]) -> str:
        return " AND ".join(self._terms[at].match for at in group)

    def _any_rare(self) -> str:
        return " OR ".join(self._terms[at].match for at in self._rare)

    def _places(self, table: str, match: str, limit: int) -> list[int]:
        return self._reach.places(self._db, table, f"({match}){self._needed}{self._barred}", limit)

    def _count_lines(self, places: Sequence[int]) -> int:
        """Return how many lines contain a term: counted, or estimated from how far back the newest of them
        reach."""
        if len(places) < MAX_MATCHES:
            return len(places)
        return min(self._reach.total, int(len(places) / self._reach.share(places[-1])))


def _candidates(db: Connection, places: Sequence[int], read: ReadRanges) -> list[ChunkCandidate]:
    """Return the chunks at these positions, in their order, with their texts."""
    rows = db.execute(
        "SELECT DISTINCT k.id, k.source, k.size, k.first_line, k.last_line, k.title, s.base FROM json_each(?) j"
        " CROSS JOIN index_chunks k ON k.id = (SELECT max(id) FROM index_chunks WHERE id <= j.value)"
        " AND j.value < k.id + k.size CROSS JOIN index_sources s ON s.id = k.source AND s.owner > 0"
        " ORDER BY j.key",
        (encode(places).decode(),),
    ).fetchall()
    texts = read(db, [(source, id - base, id - base + size) for id, source, size, _, _, _, base in rows])
    return [
        ChunkCandidate(id, source, IndexChunk(id - base, id - base + size, (first, last), title), text)
        for (id, source, size, first, last, title, base), text in zip(rows, texts, strict=True)
    ]
