"""What could be sent with a prompt, and what is: the values that go into the assembly and come out of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

Included = Literal["full", "truncated", "summary", "dropped"]

Count = Callable[[str], int]
Cut = Callable[[str, int], str]
"""The text cut to so many tokens, with a mark of what is left out; "" when nothing useful fits."""


class Block(msgspec.Struct, frozen=True):
    """A row of the manifest: what it is, how large, whether it is sent, and by which gate."""

    id: str
    kind: str
    label: str
    tokens: int
    included: Included
    gate: str
    text: str = ""


class Material(msgspec.Struct, frozen=True):
    """A text that wants to be sent. `gate` is why it may, or, when `open` is false, why it may not."""

    id: str
    kind: str
    label: str
    text: str
    gate: str
    open: bool = True
    cut: Cut | None = None
    """How it is shortened when it does not fit; None: whole or not at all."""
    extra: int = 0
    """Tokens beside those of its text: images and the like."""


class Past(msgspec.Struct, frozen=True):
    """A turn of the chat: its texts as they would be sent, and what they cost."""

    id: str
    tokens: int
    text: str
    cut: Callable[[int], tuple[Any, int, str] | None] | None = None
    """The turn shortened to so many tokens: as it is sent then, its tokens and its text; None when it cannot be."""


class Found(msgspec.Struct, frozen=True):
    """What retrieval brings within some room."""

    text: str
    tokens: int
    turns: tuple[str, ...]


Retrieve = Callable[[int, frozenset[str]], Found | None]
"""What the past has to say within so many tokens, without the turns that are sent anyway."""


class Resuming(msgspec.Struct, frozen=True):
    """A snapshot of what the session has come to, for a model that may have lost sight of it. It is drawn last, of what
    nothing else that is sent tells."""

    id: str
    label: str
    gate: str
    draw: Callable[[Sequence[str], int], str]
    """What these texts lack, within so many tokens; "" when they lack nothing."""
    unless_whole: bool = False
    """Not needed when the whole chat is sent."""
    open: bool = True


Shelf = Callable[[int, Sequence[str]], Found | None]
"""What the index has to say within so many tokens, beside the texts that are sent."""


class Materials(msgspec.Struct, frozen=True):
    """Everything that could be sent. `turns` are in the chat's order; `more_turns` says that there are older ones."""

    fixed: Sequence[Material]
    """System and rules; never cut."""
    prompt: Material
    attachments: Material | None = None
    """What is sent with the prompt, in its message; never cut."""
    tools: Sequence[Material] = ()
    """A tool each, the most needed first; `label` is its name."""
    turns: Sequence[Past] = ()
    more_turns: bool = False
    pinned: Sequence[Material] = ()
    summary: Material | None = None
    gathered: Material | None = None
    """Files as of the last compaction: they stand with the summary."""
    files: Sequence[Material] = ()
    patch_summary: Material | None = None
    diffs: Sequence[Material] = ()
    git_diff: Material | None = None
    retrieve: Retrieve | None = None
    shelf: Shelf | None = None
    resuming: Resuming | None = None
    retrieval_gate: Callable[[Sequence[str]], str | None] | None = None
    """Names the gate that lets retrieval in, given the texts that are sent; None keeps it out."""


class Assembly(msgspec.Struct, frozen=True):
    """What is sent: the manifest's blocks, which turns, those that are cut and how, and what was found."""

    blocks: list[Block]
    used: int
    turns: list[str]
    cut_turns: dict[str, Any]
    found: Found | None
    tools: frozenset[str] = frozenset()
    """The names of those that are sent."""
    needed: int = 0
    """More than the budget when system, rules and prompt alone do not fit: then nothing is sent."""
