"""Which chunks and lines of the index hold what is looked for. Says nothing of what is worth showing.

Whose words may be found is bound by ranges of places, before a word is looked up; what reaches MATCH is made of quoted
tokens by the caller. Every query has a bound of its own, so that a common word takes no longer than a rare one: of a
word that is everywhere, the newest lines are read, and the lines that hold it together with the others.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..model.events import encode
from ..model.index import Candidate, Chunk, Plan, SourceKind
from .sqlite import Connection

OWNER_BITS = 40
"""Of a place: an owner has room for a million million code points, and nothing gets the place of another ever."""

CAP = 500
"""Lines that are read for one term, newest first. A term that more lines hold is common."""

BEST_LINES = 28
"""Lines that are read and ranked; an answer has room for a dozen."""

BEST_CHUNKS = 10
"""Chunks that are ranked by all their words, beside those of the best lines."""

MAX_RANGES = 64
"""Ranges that are looked through one by one; of more, all that lies between is, and what does not belong left out."""

MAX_LEFT_OUT = 4
"""Common terms of which one may be missing; with more of them, a query for each would take too long."""

ENOUGH = 12
"""Lines that hold all common terms: then no others are looked for that hold fewer."""

SPELLED_ROWS = 24
"""Rows of different words that are read for one word."""

Read = Callable[[Connection, Sequence[tuple[int, int, int]]], list[str]]
"""The stretches of texts, by source, beginning and end."""


class Bounds(msgspec.Struct, frozen=True):
    """Which sources count: those of a chat, of a project, or all; and of these, only some. `source` is an id or a whole
    label."""

    chat: int | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    kind: SourceKind | None = None

    @property
    def whole_owners(self) -> bool:
        return self.source is self.tool is self.kind is None


def conditions(bounds: Bounds) -> tuple[str, list[Any]]:
    """For sources `s` and owners `o`."""
    where = ["1"]
    values: list[Any] = []
    for column, value in (
        ("o.chat", bounds.chat),
        ("o.project", bounds.project),
        ("s.tool", bounds.tool),
        ("s.kind", bounds.kind),
    ):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if bounds.source is not None:
        where.append("(s.key = ? OR s.label = ?)")
        values += [bounds.source, bounds.source]
    return " AND ".join(where), values


def gather(
    db: Connection, plan: Plan, bounds: Bounds, read: Read
) -> tuple[list[Candidate], tuple[int, ...], int]:
    """Candidates, how many lines hold each term, and how many lines there are."""
    reach = _Reach.of(db, bounds)
    if not reach.ranges or not plan.terms:
        return [], (0,) * len(plan.terms), 0
    finder = _Finder(db, plan, reach)
    lines = finder.lines()
    chunks = finder.chunks()
    return _candidates(db, [*lines, *chunks], read), finder.frequency, reach.total


def spellings(db: Connection, pieces: Sequence[str], bounds: Bounds) -> list[str]:
    """Rows of words that hold all of the pieces, each at least three letters; the newest first."""
    reach = _Reach.of(db, bounds)
    match = " AND ".join(quoted(piece) for piece in pieces)
    places = reach.places(db, "index_letters", match, SPELLED_ROWS)
    query = "SELECT words FROM index_spelled WHERE id = ?"
    return [words for place in places for (words,) in db.execute(query, (place,))]


def quoted(token: str) -> str:
    """A token as MATCH takes it, whatever is in it."""
    return '"' + token.replace('"', '""') + '"'


class _Reach(msgspec.Struct, frozen=True):
    """Ranges of places, newest first; with `owners`, only what is theirs. `total` is how many lines there are."""

    ranges: list[tuple[int, int]]
    total: int
    owners: str | None = None

    @staticmethod
    def of(db: Connection, bounds: Bounds) -> _Reach:
        where, values = conditions(bounds)
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
            if everyone or len(ranges) > MAX_RANGES:
                return _Reach([(ranges[-1][0], ranges[0][1])], total, owners)
        return _Reach(ranges[:MAX_RANGES], total)

    def places(self, db: Connection, table: str, match: str, limit: int) -> list[int]:
        """Where the match is, newest first."""
        mine = "" if self.owners is None else " AND (rowid >> 40) IN (SELECT value FROM json_each(?5))"
        query = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3{mine}"
            " ORDER BY rowid DESC LIMIT ?4"
        )
        found: list[int] = []
        for low, high in self.ranges:
            values = (match, low, high, limit - len(found))
            rows = db.execute(query, values if self.owners is None else (*values, self.owners))
            found += [place for (place,) in rows]
            if len(found) >= limit:
                break
        return found

    def share(self, place: int) -> float:
        """Which part of all places lies between the newest and this one."""
        sizes = [high - low + 1 for low, high in self.ranges]
        passed = sum(high - max(low, place) + 1 for low, high in self.ranges if place <= high)
        return max(passed / sum(sizes), 1e-9)


class _Finder:
    """Looks up the terms of one plan. What every found line or chunk must hold is part of every query."""

    def __init__(self, db: Connection, plan: Plan, reach: _Reach) -> None:
        self._db = db
        self._reach = reach
        self._terms = plan.terms
        self._needed = f" AND ({plan.needed})" if plan.needed else ""
        self._barred = f" NOT ({plan.barred})" if plan.barred else ""
        self._found = [self._places("index_lines", term.match, CAP) for term in plan.terms]
        self.frequency = tuple(self._often(places) for places in self._found)
        self._worth = [
            term.weight * math.log(1 + (reach.total + 0.5) / (often + 0.5))
            for term, often in zip(plan.terms, self.frequency, strict=True)
        ]
        self._rare = [at for at, places in enumerate(self._found) if 0 < len(places) < CAP]
        self._common = [at for at, places in enumerate(self._found) if len(places) >= CAP]

    def lines(self) -> list[int]:
        """The lines that hold the most telling terms, best first and newer before older."""
        held: dict[int, float] = {}
        for at in self._rare:
            worth = self._worth[at]
            for place in self._found[at]:
                held[place] = held.get(place, 0.0) + worth
        self._add_common(held)
        return [place for _, place in heapq.nlargest(BEST_LINES, ((worth, at) for at, worth in held.items()))]

    def chunks(self) -> list[int]:
        """The chunks that hold the most telling terms, best first."""
        held: dict[int, float] = {}
        for at in self._rare:
            for place in self._places("index_words", self._terms[at].match, CAP):
                held[place] = held.get(place, 0.0) + self._worth[at]
        rare = self._any_rare()
        for at in self._common:
            match = f"({rare}) AND {self._terms[at].match}" if rare else self._all(self._common)
            for place in self._places("index_words", match, CAP):
                held[place] = held.get(place, 0.0) + self._worth[at]
            if not rare:
                break
        return [place for _, place in heapq.nlargest(BEST_CHUNKS, ((w, at) for at, w in held.items()))]

    def _add_common(self, held: dict[int, float]) -> None:
        """What common terms add to the lines that have rare ones; and the lines that have nearly all common ones."""
        rare = self._any_rare()
        if rare:
            for at in self._common:
                match = f"({rare}) AND {self._terms[at].match}"
                for place in self._places("index_lines", match, 2 * CAP):
                    if place in held:
                        held[place] += self._worth[at]
        for group in self._groups():
            worth = sum(self._worth[at] for at in group)
            for place in self._places("index_lines", self._all(group), CAP):
                held.setdefault(place, worth)

    def _groups(self) -> list[list[int]]:
        """Common terms that are looked for together: all; those that say something; and these but for one, as long as
        few lines have been found."""
        common = self._common
        telling = [at for at in common if self._terms[at].weight >= 1] or common
        if not common or len(telling) < 2 or self._are_enough(common):
            return [common] if common else []
        if len(telling) > MAX_LEFT_OUT or self._are_enough(telling):
            return [common, telling]
        return [common, telling, *([at for at in telling if at != left] for left in telling)]

    def _are_enough(self, group: Sequence[int]) -> bool:
        return len(self._places("index_lines", self._all(group), ENOUGH)) == ENOUGH

    def _all(self, group: Sequence[int]) -> str:
        return " AND ".join(self._terms[at].match for at in group)

    def _any_rare(self) -> str:
        return " OR ".join(self._terms[at].match for at in self._rare)

    def _places(self, table: str, match: str, limit: int) -> list[int]:
        return self._reach.places(self._db, table, f"({match}){self._needed}{self._barred}", limit)

    def _often(self, places: Sequence[int]) -> int:
        """How many lines hold a term: counted, or told by how far back the newest of them reach."""
        if len(places) < CAP:
            return len(places)
        return min(self._reach.total, int(len(places) / self._reach.share(places[-1])))


def _candidates(db: Connection, places: Sequence[int], read: Read) -> list[Candidate]:
    """The chunks that hold these places, in their order, with their texts."""
    rows = db.execute(
        "SELECT DISTINCT k.id, k.source, k.size, k.first_line, k.last_line, k.title, s.base FROM json_each(?) j"
        " CROSS JOIN index_chunks k ON k.id = (SELECT max(id) FROM index_chunks WHERE id <= j.value)"
        " AND j.value < k.id + k.size CROSS JOIN index_sources s ON s.id = k.source ORDER BY j.key",
        (encode(places).decode(),),
    ).fetchall()
    texts = read(db, [(source, id - base, id - base + size) for id, source, size, _, _, _, base in rows])
    return [
        Candidate(id, source, Chunk(id - base, id - base + size, (first, last), title), text)
        for (id, source, size, first, last, title, base), text in zip(rows, texts, strict=True)
    ]
