"""What the model is sent: the manifest, its preview, compaction, and the instruction rules of a project."""

from __future__ import annotations

from typing import Literal

from .base import ChatRef, Json, Key, Wire, always
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
    """The parameters of `prompt/send`, or a turn that has been sent. Nothing is sent, and nothing changes."""

    text: str | None = None
    """The prompt as plain text."""
    content: list[ContentBlock] | None = None
    """The prompt as content blocks."""
    context: PromptContext | None = None
    """Switches for blocks of context."""
    overrides: PromptOverrides | None = None
    """Another model, or another effort."""
    budget: int | None = None
    """Tokens for everything except the prompt, instead of the budget of the model's context window."""
    include_text: bool | None = None
    """Whether the blocks include their text. By default only those of a turn do."""
    turn_id: str | None = None
    """Instead of a prompt: the turn of which to read what was sent. Not together with the members above."""
    request: int | None = None
    """Which request of the turn, from 1 (the default): the model is asked again after its tool calls."""


class ContextBlock(Wire, kw_only=True, frozen=True):
    """A block of the request."""

    id: str
    """The same for the same block in every request; `exclude` and `include` take it."""
    kind: str
    """system, tools, rules, summary, history, openFiles, patches, gitDiff, retrieval, attachments or prompt."""
    label: str
    """A line to show; `exclude` and `include` take it, too."""
    tokens: int
    """Tokens that it takes, or would have taken: counted if `exact`, otherwise an estimate."""
    included: Literal["full", "truncated", "summary", "dropped"]
    """How much of it is sent."""
    gate: str
    """The named reason that let it in or kept it out."""
    text: str | None = None
    """What is sent, when it was asked for. Null for a block without text, and where the text is gone."""


class ChatContextResult(ChatRef, kw_only=True, frozen=True):
    """The manifest of a request."""

    model: str
    """The model that the request is for."""
    window: int | None
    """The model's window, in tokens; null when no window is known."""
    reserve: int | None
    """Tokens reserved for the answer; null when no window is known."""
    budget: int | None
    """What may be sent; null when no window is known."""
    used: int | None
    """What is sent: the sum of the included blocks; null when nothing was recorded of the turn."""
    exact: bool
    """Whether tokens were counted with the model's own tokenizer."""
    blocks: list[ContextBlock]
    """What is sent and what is not, in order of precedence."""
    turn_id: str | None = None
    """The turn whose request this is; null for a prompt that has not been sent."""
    request: int | None = None
    """Which of the turn's requests this is."""
    requests: int | None = None
    """How many requests the turn has made; 0 when nothing was recorded of it, as for an imported turn."""
    text_gone: Literal["expired", "not_stored", "damaged"] | None = None
    """Why texts of the turn are missing: older than `session.sent_days`, never stored (the turn was imported, forked,
    or the process was killed), or unreadable."""


class ChatCompactParams(Key, kw_only=True, frozen=True):
    instructions: str | None = None
    """What the summary must not lose, in the user's words."""
    dry_run: bool = False
    """Only report what would be done."""
    postpone_turns: int | None = None
    """Instead of compacting: postpone automatic compaction for this many turns."""


class ChatCompactResult(ChatRef, kw_only=True, frozen=True):
    compaction_id: str | None
    """The compaction, whose progress is reported by events; null when there is nothing to do."""
    turns: int = always(0)
    """How many turns a summary replaces, or would replace."""
    tokens_before: int = always(0)
    """Tokens of the chat before."""
    tokens_after: int = always(0)
    """Tokens after, or for a dry run tokens without the summary."""


class ChatUncompactResult(ChatRef, kw_only=True, frozen=True):
    compaction_id: str
    """The compaction that was undone."""


class RuleInfo(Wire, kw_only=True, frozen=True):
    """A file of instructions for the model."""

    rule_path: str
    """Its path, relative to the project or absolute."""
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
    tokens: int | None
    """Tokens of its text, counted with o200k; null for a broken rule."""
    problem: str | None = None
    """Why it is not used, in English."""
    problem_code: Literal["malformed", "unreadable", "missing", "withheld", "too_many"] | None = None
    """The same by name, to translate: its text is not a rule, the file cannot be read, it does not exist, it is
    withheld as it may hold secrets or as the settings say so, or there are more files or folders than are read."""
    stale: Literal["unused", "no_match"] | None = None
    """Why it is probably of no use: no prompt has needed it for 30 days, or its globs match no file of the project."""
    metadata: Json = always({})
    """The description by its author."""


class RulesListResult(Wire, kw_only=True, frozen=True):
    items: list[RuleInfo]
    """The rules that apply in the chat or project."""
    next_cursor: str | None = None
    """Absent: the list is complete."""
