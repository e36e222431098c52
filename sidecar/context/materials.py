"""Values that go into the assembly and come out of it: what could be sent with a prompt, and what is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ..model.content import SentBlock
from ..text.token_estimate import CutText

Inclusion = Literal["full", "truncated", "summary", "dropped"]


class ManifestBlock(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of the manifest: what it is, its size, whether it is sent, and by which gate."""

    id: str
    kind: str
    label: str
    tokens: int
    included: Inclusion
    gate: str
    text: str = ""

    @property
    def is_sent(self) -> bool:
        return self.included != "dropped"


class Manifest(msgspec.Struct, frozen=True):
    """What a request to the model contains, in tokens and blocks; the event `context.assembled` has it. `kept` are the
    blocks that stay with the turn; only the turn's first request has them."""

    model: str
    window: int | None
    """None for a model of which no window is known, like `reserve` and `budget`."""
    reserve: int | None
    budget: int | None
    used: int
    exact: bool
    blocks: list[ManifestBlock]
    kept: list[SentBlock] | UnsetType = UNSET

    def without_text(self) -> Manifest:
        """The manifest as the journal and apps get it: figures and gates, without texts."""
        blocks = [msgspec.structs.replace(block, text="") for block in self.blocks]
        return msgspec.structs.replace(self, blocks=blocks)


class Candidate(msgspec.Struct, frozen=True):
    """A text that could be sent. `gate` is why it may be or, when `open` is false, why it may not."""

    id: str
    kind: str
    label: str
    text: str
    gate: str
    open: bool = True
    cut: CutText | None = None
    """Shortens the text when it does not fit; None: whole or not at all."""
    extra: int = 0
    """Tokens in addition to its text, such as images."""
    is_summary: bool = False
    """Whether it only names what could be sent: the list of open files."""
    is_cut: bool = False
    """Whether its text lacks something that was cut off or left out before the assembly."""

    def inclusion(self, cut: bool = False) -> Inclusion:
        """How it is sent: complete, or without what was `cut` off now or before."""
        return "summary" if self.is_summary else "truncated" if cut or self.is_cut else "full"


class PastTurn(msgspec.Struct, frozen=True):
    """A turn of the chat: its texts as sent, and their tokens."""

    id: str
    tokens: int
    text: str
    cut: Callable[[int], tuple[Any, int, str] | None] | None = None
    """Shortens the turn to so many tokens: returns the form that is sent, its tokens and its text; None when
    that is impossible."""


class RetrievedText(msgspec.Struct, frozen=True):
    """The text that retrieval found within a number of tokens."""

    text: str
    tokens: int
    turns: tuple[str, ...]


Retrieve = Callable[[int, frozenset[str]], RetrievedText | None]
"""Retrieves text from the past within so many tokens, without the turns that are sent anyway."""


class ResumeCandidate(msgspec.Struct, frozen=True):
    """A snapshot of the session's state, for a model that may no longer see it. It is rendered last, from
    what no other block contains."""

    id: str
    label: str
    gate: str
    draw: Callable[[Sequence[str], int], str]
    """Renders what these texts lack, within so many tokens; "" when they lack nothing."""
    unless_whole: bool = False
    """Not needed when the whole chat is sent."""
    open: bool = True


IndexLookup = Callable[[int, Sequence[str]], RetrievedText | None]
"""Returns text from the index within so many tokens, beside the texts that are sent."""


class Candidates(msgspec.Struct, frozen=True):
    """Everything that could be sent. `turns` are in the chat's order; `more_turns` says that there are older
    ones."""

    fixed: Sequence[Candidate]
    """System and rules; never cut. A closed one did not fit and is only listed."""
    prompt: Candidate
    attachments: Candidate | None = None
    """What is attached to the prompt, in its message; never cut."""
    tools: Sequence[Candidate] = ()
    """One per tool, the most needed first; `label` is its name."""
    turns: Sequence[PastTurn] = ()
    more_turns: bool = False
    pinned: Sequence[Candidate] = ()
    summary: Candidate | None = None
    gathered: Candidate | None = None
    """Files as of the last compaction: they are placed with the summary."""
    files: Sequence[Candidate] = ()
    patch_summary: Candidate | None = None
    diffs: Sequence[Candidate] = ()
    git_diff: Candidate | None = None
    retrieve: Retrieve | None = None
    index_lookup: IndexLookup | None = None
    resuming: ResumeCandidate | None = None
    retrieval_gate: Callable[[Sequence[str]], str | None] | None = None
    """Returns the gate that allows retrieval, given the texts that are sent; None prevents it."""


class Assembly(msgspec.Struct, frozen=True):
    """What is sent: the blocks of the manifest, the turns, the cut turns in their cut form, and the retrieved
    text."""

    blocks: list[ManifestBlock]
    used: int
    turns: list[str]
    cut_turns: dict[str, Any]
    found: RetrievedText | None
    tools: frozenset[str] = frozenset()
    """The names of the tools that are sent."""
    needed: int = 0
    """More than the budget when system, rules and prompt alone do not fit: then nothing is sent."""
