"""Searches the messages of all chats for what a person types: whole words first, then words that begin so, then
parts of words and scripts without spaces.

No FTS syntax comes from outside: MATCH gets quoted tokens of letters and digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.chats import ChatQuery, MessageHit
from ...text.search_words import Term, find_matches, is_dense, pairs, parse_terms, snippet
from ..engine.sqlite import Connection
from ..tables import chats

Found = tuple[int, str, list[tuple[int, int]], int]
"""The id of a message, the part of it to show, the matches in that, and where it begins in the message."""

MIN_PREFIX = 2
"""Letters from which a word is also found by its beginning: one letter begins a tenth of all words."""

MIN_INSIDE = 3
"""Letters that are searched inside other words: the index has three at a time."""


def search_chats(db: Connection, page: ChatQuery) -> tuple[list[MessageHit], str | None]:
    """Return the messages that match `page.query`, whole words first, and where the next page starts."""
    where, values = chats.conditions(page)
    start = chats.offset(page.cursor)
    found, following = search(db, page.query or "", " AND ".join(where), values, start, page.limit)
    hits = [chats.message_hit(db, *one) for one in found]
    return hits, str(following) if following is not None else None


def search(
    db: Connection, query: str, where: str, values: Sequence[Any], offset: int, limit: int
) -> tuple[list[Found], int | None]:
    """Return the matching messages, and the offset of the next page. `where` restricts the messages `m` and their
    chats `c`."""
    terms = parse_terms(query)
    if not terms:
        return [], None
    finder = _Finder(db, terms, where, values)
    need = offset + limit + 1
    while True:
        ids, more = finder.candidates(need)
        hits = finder.read_hits(ids)
        if len(hits) >= offset + limit + 1 or not more:
            break
        # Some candidates did not match when their text was read. Twice as many each time, so that a page deep
        # in the list costs few rounds; texts that were read are kept.
        need *= 2
    page = hits[offset : offset + limit]
    return page, offset + limit if len(hits) > offset + limit else None


class _Finder:
    """The candidates of one query, in the order in which they are shown."""

    def __init__(self, db: Connection, terms: Sequence[Term], where: str, values: Sequence[Any]) -> None:
        self._db = db
        self._terms = terms
        self._where = where
        self._values = values
        self._texts: dict[int, Found | None] = {}
        self._tokens = [
            (token, term.prefix and at == len(term.tokens) - 1)
            for term in terms
            for at, token in enumerate(term.tokens)
        ]
        self._in_parts = [(token, prefix) for token, prefix in self._tokens if self._has_part(token, prefix)]

    def candidates(self, need: int) -> tuple[list[tuple[int, bool]], bool]:
        """Return messages, with whether they contain the words as whole ones, and whether there may be more."""
        found: dict[int, bool] = {}
        more = False
        for sure, find in (
            (True, self._find_words),
            (True, self._find_beginnings),
            (False, self._find_parts),
        ):
            ids = find(need)
            more = more or len(ids) == need
            for id in ids:
                found.setdefault(id, sure)
        if not found:
            # Last, and only when nothing else was found: three letters occur within many words that nobody
            # meant.
            ids = self._find_inside(need)
            found, more = dict.fromkeys(ids, False), len(ids) == need
        return list(found.items()), more

    def read_hits(self, candidates: Sequence[tuple[int, bool]]) -> list[Found]:
        hits = (self._hit(id, sure) for id, sure in candidates)
        return [hit for hit in hits if hit is not None]

    def _hit(self, id: int, sure: bool) -> Found | None:
        if id not in self._texts:
            (text,) = self._db.execute("SELECT text FROM messages WHERE id = ?", (id,)).fetchone()
            matches = find_matches(text, self._terms, inside=True)
            if matches is None:
                # The index divides some scripts into words in its own way.
                matches = [] if sure else None
            self._texts[id] = (id, *snippet(text, matches)) if matches is not None else None
        return self._texts[id]

    def _find_words(self, need: int) -> list[int]:
        match = " AND ".join(_phrase(term, prefix=False) for term in self._terms)
        return self._select("words", match, need, "words.rank, m.id DESC")

    def _find_beginnings(self, need: int) -> list[int]:
        match = " AND ".join(_phrase(term, prefix=term.prefix) for term in self._terms)
        return self._select("words", match, need, "m.id DESC")

    def _find_parts(self, need: int) -> list[int]:
        if not self._in_parts:
            return []
        matches: list[str] = []
        conditions = []
        for token, prefix in self._tokens:
            conditions.append(
                "m.id IN (SELECT rowid FROM words WHERE words MATCH ?"
                " UNION SELECT rowid FROM message_parts WHERE message_parts MATCH ?)"
            )
            matches += [_quoted(token, prefix), _part_match(token, prefix)]
        query = (
            f"SELECT m.id FROM messages m JOIN chats c ON c.id = m.chat WHERE {' AND '.join(conditions)}"
            f" AND {self._where} ORDER BY m.id DESC LIMIT ?"
        )
        return [id for (id,) in self._db.execute(query, (*matches, *self._values, need))]

    def _find_inside(self, need: int) -> list[int]:
        """Messages whose words contain those that begin no word."""
        if any(len(token) < MIN_INSIDE for token, _ in self._tokens):
            return []
        match = " AND ".join(
            f'"{token[at : at + 3]}"' for token, _ in self._tokens for at in range(len(token) - 2)
        )
        return self._select("grams", match, need, "m.id DESC")

    def _select(self, index: str, match: str, need: int, order: str) -> list[int]:
        query = (
            f"SELECT m.id FROM {index} JOIN messages m ON m.id = {index}.rowid JOIN chats c ON c.id = m.chat"
            f" WHERE {index} MATCH ? AND {self._where} ORDER BY {order} LIMIT ?"
        )
        return [id for (id,) in self._db.execute(query, (match, *self._values, need))]

    def _has_part(self, token: str, prefix: bool) -> bool:
        query = "SELECT 1 FROM message_parts WHERE message_parts MATCH ? LIMIT 1"
        return self._db.execute(query, (_part_match(token, prefix),)).fetchone() is not None


def _phrase(term: Term, *, prefix: bool) -> str:
    return _quoted(" ".join(term.tokens), prefix and len(term.tokens[-1]) >= MIN_PREFIX)


def _quoted(text: str, prefix: bool) -> str:
    return f'"{text}"*' if prefix else f'"{text}"'


def _part_match(token: str, prefix: bool) -> str:
    if not is_dense(token):
        return _quoted(token, prefix and len(token) >= MIN_PREFIX)
    if len(token) == 1:
        return f'"{token}"*'
    # Without the last entry, a single character: it is in the index only where a run ends.
    return " AND ".join(f'"{pair}"' for pair in pairs(token)[:-1])
