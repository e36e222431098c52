"""The objects inside items, errors and other messages, and which members an item of each type has.

The messages carry these as plain objects, so that a start need not make their types; the schemas and
the reference page have them whole.
"""

from __future__ import annotations

from typing import Any, Literal

from .base import Json, Wire
from .chats import Owner
from .configuration import ChatConfig
from .content import ContentBlock
from .patches import FileRestore
from .prompts import PromptOverrides
from .system import TrustChange

__all__ = [
    "ITEM_TYPES",
    "OBJECTS",
    "ErrorDetails",
    "ItemType",
    "Location",
    "NotRun",
    "PlanEntry",
    "Rewritten",
    "ToolOutput",
]


class ToolOutput(Wire, kw_only=True, frozen=True):
    """What a tool returned."""

    text: str
    """The text, or its beginning and end."""
    truncated: bool
    """Whether `text` is not all of it."""
    ref: str | None = None
    """For `blob/read`: the whole text."""
    source: str | None = None
    """For `index/get`: the whole text in the index."""
    content: list[ContentBlock] | None = None
    """The images and audio that it returned, by `blobId`."""


class Location(Wire, kw_only=True, frozen=True):
    """A place in a file that a tool used."""

    path: str
    """Relative to the project, or absolute."""
    line: int | None = None
    """The line, from 1."""


class PlanEntry(Wire, kw_only=True, frozen=True):
    """A step of a plan."""

    content: str
    """What is to be done."""
    status: Literal["pending", "in_progress", "completed"]
    """How far it is."""
    priority: Literal["high", "medium", "low"] | None = None
    """How important it is."""


class Rewritten(Wire, kw_only=True, frozen=True):
    """How a hook changed the arguments of a tool call."""

    by: str | None = None
    """The hook."""
    input: Any = None
    """The arguments that the model had given."""


class NotRun(Wire, kw_only=True, frozen=True):
    """Why a tool call was not run."""

    code: str
    """A stable name of the reason (docs/denials.md)."""
    message: str
    """The reason, in English."""
    by: str | None = None
    """The rule or the hook that decided."""
    instead: str | None = None
    """For a redirect: the tool to use."""


class ErrorDetails(Wire, kw_only=True, frozen=True):
    """The `data` of an error: what an app shows in its own words."""

    name: str
    """The name of the error's code."""
    retryable: bool
    """Whether the same request may succeed later."""
    reason: str | None = None
    """What exactly failed; a name from the error's list of reasons."""
    params: Json | None = None
    """The values that a text about it needs, such as `field` and `expected`."""
    retry_after_ms: int | None = None
    """How long to wait before trying again."""
    session_id: str | None = None
    """The chat's session id."""
    chat_id: str | None = None
    """The app's name for the chat."""
    action: str | None = None
    """What the user can do, by name: enter_key, free_disk, upgrade_app, compact, retry and others."""
    hint: str | None = None
    """What to do about it, in English, for developers."""
    ref: str | None = None
    """Where the log has more about it."""
    owner: Owner | None = None
    """Of `locked`: the process that writes to the chat."""
    outcome: Json | None = None
    """Of `request_closed`: what was recorded, as the result of `permission/answer` or `input/answer`."""
    file_changes: list[FileRestore] | None = None
    """Of `precondition_failed` after a revert or rewind: the problem of each file."""
    epoch: str | None = None
    """Of `cursor_expired`: the chat's epoch."""
    last_seq: int | None = None
    """Of `cursor_expired`: the seq of its newest event."""
    needed: int | None = None
    """Of `context_budget`: the tokens of what does not fit."""
    available: int | None = None
    """Of `context_budget`: the tokens that there are for it."""
    supported: list[int] | None = None
    """Of `unsupported_version`: the versions that the sidecar speaks."""


ItemType = Literal["user", "message", "thought", "tool", "plan", "compaction", "command", "notice", "error"]

ITEM_TYPES: dict[ItemType, tuple[str, ...]] = {
    "user": ("content",),
    "message": (),
    "thought": (),
    "tool": (
        *("name", "kind", "input", "output", "locations", "changes", "exitCode"),
        *("error", "rewritten", "notRun"),
    ),
    "plan": ("entries",),
    "compaction": (
        *("compactionId", "trigger", "fromTurn", "toTurn", "tokensBefore", "tokensAfter", "summary"),
        *("undoable", "error"),
    ),
    "command": ("name", "result"),
    "notice": ("content", "kind"),
    "error": ("error",),
}
"""What an item of each type may have beside the members that every item has."""

OBJECTS: dict[tuple[str, str], Any] = {
    ("Item", "output"): ToolOutput,
    ("Item", "locations"): list[Location],
    ("Item", "entries"): list[PlanEntry],
    ("Item", "rewritten"): Rewritten,
    ("Item", "notRun"): NotRun,
    ("ErrorObject", "data"): ErrorDetails,
    ("ErrorRaised", "data"): ErrorDetails,
    ("PermissionRequest", "rewritten"): Rewritten,
    ("PromptQueued", "overrides"): PromptOverrides,
    ("ToolCallResult", "content"): list[ContentBlock],
    ("TrustStatus", "changes"): list[TrustChange],
    ("ChatOpenParams", "config"): ChatConfig,
    ("ChatOpenResult", "config"): ChatConfig,
    ("ChatConfigureParams", "set"): ChatConfig,
    ("ChatConfigureResult", "config"): ChatConfig,
    ("ConfigUpdated", "config"): ChatConfig,
}
"""The types of members that are declared as plain objects."""
