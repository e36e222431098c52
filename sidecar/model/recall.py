"""Values of the search in a chat's past: plain data between the store, which finds, and `context`, which
selects."""

from __future__ import annotations

import msgspec


class PromptTerms(msgspec.Struct, frozen=True):
    """The search terms of a prompt. Every string is one token of an index without syntax."""

    words: dict[str, float] = {}
    """Single words in lower case, and the relative weight of each."""

    triples: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    """Three and two adjacent characters of scripts without spaces."""

    def __bool__(self) -> bool:
        return bool(self.words or self.triples or self.pairs)


class MessageCandidate(msgspec.Struct, frozen=True):
    """A message of the past: its speaker, time and turn, and which of the terms it contains."""

    id: int
    turn: str
    ordinal: int
    """The turn's position in the chat."""

    role: str
    """`user` or `assistant`."""

    name: str | None
    """The speaker, if an imported chat names its speakers."""

    ts: int
    text: str
    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    """Terms that were found only by their letters: parts of words, misspelt words, pairs and triples."""


class MessagePool(msgspec.Struct, frozen=True):
    """The result of a search: messages in the chat's order, and how often each term occurs in the whole chat."""

    candidates: tuple[MessageCandidate, ...] = ()
    frequency: dict[str, int] = {}
    total: int = 0
    """Messages of the chat."""

    newest: int = 0
    """The time of the chat's newest message."""
