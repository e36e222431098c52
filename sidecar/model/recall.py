"""What a chat's past is searched for, and what was found there: plain values between the store, which finds, and
`context`, which chooses."""

from __future__ import annotations

import msgspec


class Terms(msgspec.Struct, frozen=True):
    """What of a prompt is looked up. Every string is one token of an index and no syntax of it."""

    words: dict[str, float] = {}
    """Single words in lower case, and how much of a word's weight each has."""

    triples: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    """Three and two neighbouring characters of scripts that are written without blanks."""

    def __bool__(self) -> bool:
        return bool(self.words or self.triples or self.pairs)


class Candidate(msgspec.Struct, frozen=True):
    """A message of the past: who said it when, in which turn, and which of the terms it holds."""

    id: int
    turn: str
    ordinal: int
    """The turn's place in the chat."""

    role: str
    """`user` or `assistant`."""

    name: str | None
    """Who spoke, where an imported chat names its speakers."""

    ts: int
    text: str
    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    """Terms that were found by their letters alone: parts of words, misspelt words, pairs and triples."""


class Pool(msgspec.Struct, frozen=True):
    """What a search has brought: messages in the chat's order, and how often each term is said in all of the chat."""

    candidates: tuple[Candidate, ...] = ()
    frequency: dict[str, int] = {}
    total: int = 0
    """Messages of the chat."""

    newest: int = 0
    """When the chat's newest message was said."""
