"""Searches the past of one chat for the terms of a prompt: which visible messages contain which terms, and
their neighbours. Does not decide what is worth sending; `context` does.

The chat is a bound parameter. Terms are single quoted tokens, so no FTS syntax comes from a prompt. Every
query is bounded, which limits the time of a search in a long chat.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...model.events import encode
from ...model.recall import MessageCandidate, MessagePool, PromptTerms
from ...text.distance import edit_distance
from ..engine.sqlite import Connection
from ..tables import message_parts, refusals

LIMIT = 240
"""Messages that a search returns, without neighbours. A window of 8,000 tokens takes a hundred short ones."""

USER_MESSAGES_PER_ANSWER = 2
"""The user's messages come first: an answer is long and contains every word of its subject."""

MATCHES_PER_TERM = 400
"""Newest first. A more frequent word says little; its frequency is estimated from how far these reach back."""

HITS_WITH_NEIGHBOURS = 128
REACH = 2
"""Turns on either side of a good match that are returned with it: the question before an answer, the answer
after a question."""

SHORT_ANSWER = 600
"""Letters: a longer answer is not returned as a neighbour, since it would replace many messages."""

SCANNED_MESSAGES = 1500
"""Newest messages that are scanned for pairs of characters, which no index contains."""

PAGES = 4
"""Rounds of reading messages when many matches are in hidden turns."""

MAX_MISSPELT = 4
"""Words without a match in this chat that are searched by their letters."""

RARE = 3
"""Messages: a word with fewer matches is also searched by its letters."""

MIN_MISSPELT = 5
"""Letters of such a word: a shorter one resembles too many others."""

INDEXED_LETTERS = 2000
"""Letters indexed of each message, as in the migration."""

_WORD = re.compile(r"[^\W_]+")
_FOUND = (
    "SELECT i.rowid, m.role FROM {index} i CROSS JOIN messages m INDEXED BY messages_of_chat"
    " ON m.chat = ?1 AND m.id = i.rowid WHERE {index} MATCH ?2 AND i.rowid BETWEEN ?3 AND ?4"
    " ORDER BY i.rowid DESC LIMIT ?5"
)
_ROW = (
    "SELECT m.id, m.turn, t.ordinal, m.role, CASE WHEN t.engine = 'import' AND m.role = 'user' THEN"
    " (SELECT json_extract(CAST(e.data AS TEXT), '$.item.name') FROM events e"
    " WHERE e.chat = ?1 AND e.seq = t.first_seq) END, m.ts, m.text"
)


def search(db: Connection, chat: int, terms: PromptTerms, limit: int = LIMIT) -> MessagePool:
    """Return the messages with the rarest and most of the terms, the user's first, and their neighbours."""
    low, high, total = db.execute(
        "SELECT min(id), max(id), count(*) FROM messages WHERE chat = ?", (chat,)
    ).fetchone()
    if not total or not terms:
        return MessagePool()
    finder = _Finder(db, chat, low, high, total)
    finder.find(terms)
    rows = _visible(db, chat, finder.best(terms, PAGES * limit), limit)
    beside = neighbours(db, chat, [row[2] for row in rows[:HITS_WITH_NEIGHBOURS]])
    messages = {row[0]: row for row in [*rows, *beside]}
    (newest,) = db.execute("SELECT ts FROM messages WHERE id = ?", (high,)).fetchone()
    return MessagePool(tuple(finder.candidates(messages)), finder.frequency, total, newest)


def neighbours(db: Connection, chat: int, ordinals: Iterable[int]) -> list[tuple[Any, ...]]:
    """Return the messages of the visible turns within reach of these."""
    near = sorted({ordinal + step for ordinal in ordinals for step in range(-REACH, REACH + 1)})
    return db.execute(
        f"{_ROW} FROM json_each(?2) j CROSS JOIN turns t ON t.chat = ?1 AND t.ordinal = j.value AND t.hidden = 0"
        f" AND {refusals.sent_condition('t')}"
        " CROSS JOIN messages m ON m.chat = ?1 AND m.turn = t.id AND (m.role = 'user' OR length(m.text) <= ?3)",
        (chat, encode(near).decode(), SHORT_ANSWER),
    ).fetchall()


def rebuild(db: Connection) -> None:
    """Rebuild the indexes from the messages."""
    message_parts.rebuild(db)
    db.execute("INSERT INTO stems (stems) VALUES ('rebuild')")
    db.execute("INSERT INTO grams (grams) VALUES ('delete-all')")
    db.execute(f"INSERT INTO grams (rowid, text) SELECT id, substr(text, 1, {INDEXED_LETTERS}) FROM messages")


class _Finder:
    """Finds which messages of a chat contain which terms."""

    def __init__(self, db: Connection, chat: int, low: int, high: int, total: int) -> None:
        self._db = db
        self._chat = chat
        self._low, self._high, self._total = low, high, total
        self._words: dict[str, dict[int, str]] = {}
        self._letters: dict[str, dict[int, str]] = {}
        self.frequency: dict[str, int] = {}

    def find(self, terms: PromptTerms) -> None:
        for word in terms.words:
            self._note(word, self._matches("stems", _quote(word)), self._words)
        rare = [word for word in terms.words if len(word) >= MIN_MISSPELT and self.frequency[word] < RARE]
        for word in rare[:MAX_MISSPELT]:
            self._note(word, self._matches("grams", _halves(word)), self._letters)
        for triple in terms.triples:
            self._note(triple, self._matches("grams", _quote(triple)), self._letters)
        if terms.pairs:
            self._scan(terms.pairs)

    def best(self, terms: PromptTerms, limit: int) -> list[int]:
        """Return messages by the rarity of their terms, newer before older; one answer per two messages of
        the user."""
        said: dict[int, float] = {}
        answered: dict[int, float] = {}
        for found in (self._words, self._letters):
            for term, messages in found.items():
                worth = terms.words.get(term, 1.0) * math.log(
                    1 + (self._total + 1) / (self.frequency[term] + 0.5)
                )
                for id, role in messages.items():
                    weights = said if role == "user" else answered
                    weights[id] = weights.get(id, 0.0) + worth
        users, answers = _by_weight(said, limit), _by_weight(answered, limit)
        mixed: list[int] = []
        for at, answer in enumerate(answers):
            mixed += [*users[at * USER_MESSAGES_PER_ANSWER : (at + 1) * USER_MESSAGES_PER_ANSWER], answer]
        return (mixed + users[len(answers) * USER_MESSAGES_PER_ANSWER :])[:limit]

    def candidates(self, rows: dict[int, tuple[Any, ...]]) -> list[MessageCandidate]:
        """Return the messages with the terms that each contains, in the order of the chat."""
        words: dict[int, set[str]] = {id: set() for id in rows}
        letters: dict[int, set[str]] = {id: set() for id in rows}
        for found, held in ((self._words, words), (self._letters, letters)):
            for term, messages in found.items():
                for id in messages.keys() & rows.keys():
                    held[id].add(term)
        made = []
        for id, (_, turn, ordinal, role, name, ts, text) in rows.items():
            alike = {
                term for term in letters[id] - words[id] if len(term) < MIN_MISSPELT or _resembles(term, text)
            }
            made.append(
                MessageCandidate(
                    id, turn, ordinal, role, name, ts, text, frozenset(words[id]), frozenset(alike)
                )
            )
        return sorted(made, key=lambda candidate: (candidate.ordinal, candidate.id))

    def _matches(self, index: str, expression: str) -> list[tuple[int, str]]:
        return self._db.execute(
            _FOUND.format(index=index), (self._chat, expression, self._low, self._high, MATCHES_PER_TERM)
        ).fetchall()

    def _note(self, term: str, rows: Sequence[tuple[int, str]], found: dict[str, dict[int, str]]) -> None:
        often = len(rows)
        if often >= MATCHES_PER_TERM:
            reach = self._high - rows[-1][0] + 1
            often = min(self._total, often * (self._high - self._low + 1) // reach)
        self.frequency[term] = max(often, self.frequency.get(term, 0))
        found[term] = dict(rows)

    def _scan(self, pairs: Sequence[str]) -> None:
        newest = self._db.execute(
            "SELECT id, role, text FROM messages WHERE chat = ? ORDER BY id DESC LIMIT ?",
            (self._chat, SCANNED_MESSAGES),
        ).fetchall()
        for pair in pairs:
            self._note(pair, [(id, role) for id, role, text in newest if pair in text], self._letters)


def _by_weight(weights: dict[int, float], limit: int) -> list[int]:
    """Sort by weight, and newer before older for equal weights."""
    return sorted(sorted(weights, reverse=True), key=weights.__getitem__, reverse=True)[:limit]


def _resembles(word: str, text: str) -> bool:
    """Return whether the text contains the word inside another, or one that differs in a letter or two."""
    text = text[:INDEXED_LETTERS].lower()
    if word in text:
        return True
    most = 1 if len(word) < 8 else 2
    return any(
        abs(len(other) - len(word)) <= most
        and (other.startswith(word[:3]) or other.endswith(word[-3:]))
        and edit_distance(word, other, most) <= most
        for other in set(_WORD.findall(text))
    )


def _visible(db: Connection, chat: int, ids: Sequence[int], limit: int) -> list[tuple[Any, ...]]:
    """Return the first messages, in their order, that are in visible turns."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(ids), limit):
        rows += db.execute(
            f"{_ROW} FROM json_each(?2) j CROSS JOIN messages m ON m.id = j.value AND m.chat = ?1"
            f" CROSS JOIN turns t ON t.chat = ?1 AND t.id = m.turn AND t.hidden = 0 AND {refusals.sent_condition('t')}"
            " ORDER BY j.key",
            (chat, encode(ids[start : start + limit]).decode()),
        ).fetchall()
        if len(rows) >= limit:
            break
    return rows[:limit]


def _quote(token: str) -> str:
    return f'"{token}"'


def _halves(word: str) -> str:
    """Return a query for either half of a word: one wrong letter leaves the other half intact."""
    triples = [_quote(word[at : at + 3]) for at in range(len(word) - 2)]
    middle = len(triples) / 2
    first, second = triples[: math.ceil(middle)], triples[math.floor(middle) :]
    return f"({' AND '.join(first)}) OR ({' AND '.join(second)})"
