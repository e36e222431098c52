"""What the model is sent: the manifest, its preview, compaction, and the instruction rules of a project."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Json, Key, Wire
from .content import ContentBlock
from .prompts import PromptContext, PromptOverrides

__all__ = [
    "ChatCompactParams",
    "ChatCompactResult",
    "ChatContextParams",
    "ChatContextResult",
    "ChatUncompactResult",
    "ContextBlock",
    "RuleInfo",
    "RulesListResult",
]


class ChatContextParams(Key, kw_only=True, frozen=True):
    """What `prompt/send` would get. Nothing is sent, and nothing changes."""

    text: str | None = None
    """The prompt as plain text."""
    content: list[ContentBlock] | None = None
    """The prompt as content blocks."""
    context: PromptContext | None = None
    """Switches for blocks of context."""
    overrides: PromptOverrides | None = None
    """Another model, or another effort."""
    budget: int | None = None
    """Tokens for all but the prompt, instead of what the model's window gives."""
    include_text: bool = False
    """Whether the blocks come with their text."""


class ContextBlock(Wire, kw_only=True, frozen=True):
    """A block of the request."""

    id: str
    """The same for the same block in every request; `exclude` and `include` take it."""
    kind: str
    """system, tools, rules, summary, history, openFiles, patches, gitDiff, retrieval, attachments or prompt."""
    label: str
    """A line to show; `exclude` and `include` take it, too."""
    tokens: int
    """What it takes, or would have taken."""
    included: Literal["full", "truncated", "summary", "dropped"]
    """How much of it is sent."""
    gate: str
    """The named reason that let it in or kept it out."""
    text: str | None = None
    """What is sent, when it was asked for."""


class ChatContextResult(ChatRef, kw_only=True, frozen=True):
    """The manifest of a request."""

    model: str
    """Who would be asked."""
    window: int
    """The model's window, in tokens."""
    reserve: int
    """Kept for the answer."""
    budget: int
    """What may be sent."""
    used: int
    """What is sent: the sum of the included blocks."""
    exact: bool
    """Whether tokens were counted with the model's own tokenizer."""
    blocks: list[ContextBlock]
    """What is sent and what is not, in the order of their claims."""


class ChatCompactParams(Key, kw_only=True, frozen=True):
    instructions: str | None = None
    """What the summary must not lose, in the user's words."""
    dry_run: bool = False
    """Only tell what would be done."""
    postpone_turns: int | None = None
    """Instead of compacting: leave the chat alone for so many turns."""


class ChatCompactResult(ChatRef, kw_only=True, frozen=True):
    compaction_id: str | None
    """The compaction, whose progress comes as events; null when there is nothing to do."""
    turns: int = 0
    """How many turns a summary stands for, or would."""
    tokens_before: int = 0
    """What the chat took."""
    tokens_after: int = 0
    """What it takes, or would without the summary."""


class ChatUncompactResult(ChatRef, kw_only=True, frozen=True):
    compaction_id: str
    """The compaction that no longer counts."""


class RuleInfo(Wire, kw_only=True, frozen=True):
    """A file of instructions for the model."""

    rule_path: str
    """Where it stands, relative to the project or absolute."""
    name: str
    """What it is called."""
    scope: Literal["user", "project"]
    """Whose it is."""
    applies: str
    """always, glob or word."""
    priority: int
    """Higher ones come first."""
    load_count: int
    """How often it was read for a prompt."""
    last_seen: int | None
    """Milliseconds since 1970."""
    last_changed: int | None
    """Milliseconds since 1970."""
    tokens: int
    """What it takes."""
    problem: str | None = None
    """Why it is not used."""
    metadata: Json = {}
    """What its author wrote beside it."""


class RulesListResult(Wire, kw_only=True, frozen=True):
    items: list[RuleInfo]
    """The rules that hold in the chat or project."""
    next_cursor: str | None = None
    """Absent: the list is whole."""
