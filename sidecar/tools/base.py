"""The interface between the engine and a tool: `ToolContext`, `Intent` and `ToolOutcome`.

A tool plans before it acts. `prepare` reads and computes but changes nothing; it describes the action in an `Intent`,
which a rule or the user may refuse. Tools never write files: a tool returns the bytes before and after (`Edit`), and
the caller writes them. Knows nothing of chats, turns and the store. `ToolSpec`, what the model reads of a tool, is in
`providers/base.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from ..model import JsonObject
from ..model.content import GivenBlock
from ..model.figures import CallSavings
from ..model.index import Results, SearchScope, Source, SourceKind, SourceText
from ..policy.rules import PermissionKind
from ..providers.base import ToolSpec
from ..workspace.paths import ReadFilter, Workspace

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""The kind of a tool, as the protocol names it; an app chooses its icon by it."""

ShowOutput = Callable[[str], Awaitable[None]]
"""Receives the output of a program while it runs."""

T = TypeVar("T")


class Edit(msgspec.Struct, frozen=True):
    """The bytes of a file before and after; None means that there is no file. `path` is relative to the project.
    `mode` holds the permission bits of a file that is restored. `in_buffer` says that the bytes before are those of
    the user's editor, which has not saved them: the editor writes the new ones.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    in_buffer: bool = False


UnconfinedCode = Literal["switched_off", "not_installed", "not_working", "in_terminal"]
"""Why a command runs outside the sandbox, by name."""


class Confinement(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whether a command runs in a sandbox, and why not."""

    active: bool
    reason: str | None = None
    reason_code: UnconfinedCode | None = None


class Intent(msgspec.Struct, frozen=True):
    """What a call intends to do: the path, command line, URL or tool (`subject`), and the planned edits.

    `folder` is the working folder of a command, relative to the project. `reads_only` is set when a foreign tool
    claims that it changes nothing. `after` is the permitted URL that redirected to this one. `language` says that
    `subject` is code under a heading. `parts` are labelled commands that replace the subject; each needs a permission
    of its own, and `ToolContext.refused` returns those that were denied. `sandbox` is set for commands and code.
    `always_asks` is why no rule and no mode allows it without asking. `shown` are edits that another program makes
    itself: the user sees them, and nothing is written. `allowed_before` says that the user has allowed the call that
    this is a part of: it asks only where a rule says so.
    """

    kind: PermissionKind
    subject: str
    edits: tuple[Edit, ...] = ()
    folder: str | None = None
    reads_only: bool = False
    after: str | None = None
    language: str | None = None
    parts: tuple[tuple[str, str], ...] = ()
    sandbox: Confinement | None = None
    always_asks: str | None = None
    shown: tuple[Edit, ...] = ()
    allowed_before: bool = False


class Permission(msgspec.Struct, frozen=True):
    """Whether a call is permitted; `words` hold the reason for the model, or what the user added. `by_user`: a person
    has allowed exactly this.
    """

    allowed: bool
    words: str = ""
    denial: dict[str, str] | None = None
    by_user: bool = False


class ToolOutcome(msgspec.Struct, frozen=True):
    """The result of a tool call, for the model.

    `paths` are the files that it read, relative to the project; `seen` the sha256 of those whose bytes the model now
    knows; `matched` those that a search found; `whole` the full output when `text` is a part of it. `seen` makes them
    open files and permits edits; a tool that shows only facts about a file leaves it empty.

    `shown` says that the model asked for this text: it is sent in full instead of a preview. `source` is the id in
    the index when the tool has stored the full output itself.
    """

    text: str
    failed: bool = False
    denied: bool = False
    paths: tuple[str, ...] = ()
    seen: dict[str, str] = {}
    matched: tuple[str, ...] = ()
    exit_code: int | None = None
    whole: str | None = None
    not_run: dict[str, str] | None = None
    """Why the call was not run (`policy/denials`)."""
    shown: bool = False
    source: str | None = None
    measured: CallSavings | None = None
    """How much the call saved in the context window, for the statistics."""
    media: tuple[GivenBlock, ...] = ()
    """Images and audio as the app or a server sent them, not yet checked."""


class PlannedCall(msgspec.Struct, frozen=True):
    """A validated call: the permission that it needs, and the function that runs it afterwards."""

    intent: Intent
    run: Callable[[], Awaitable[ToolOutcome]]


class ToolError(Exception):
    """The call of the model cannot run; the message is for the model."""


class ToolInput(msgspec.Struct, frozen=True):
    """The input of a call, as the model sent it. A tool reads each parameter by its type."""

    values: JsonObject

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter unchecked: for a title, or one that is neither text, number nor flag."""
        return self.values.get(name, default)

    def text(self, name: str, default: str | None = None, *, empty: bool = False) -> str:
        """Return a text parameter; `empty` allows empty text."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or (not value and not empty):
            raise ToolError(f"`{name}` must be text.")
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.values.get(name) is not None else None

    def number(self, name: str, default: int, *, low: int = 1) -> int:
        """Return an integer parameter."""
        value = self.values.get(name)
        if value is None:
            return default
        if type(value) is not int or value < low:
            raise ToolError(f"`{name}` must be a whole number from {low}.")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean parameter; False when it is absent."""
        value = self.values.get(name)
        if value is None:
            return False
        if type(value) is not bool:
            raise ToolError(f"`{name}` must be true or false.")
        return value


PlanStatus = Literal["pending", "in_progress", "completed"]


class PlanEntry(msgspec.Struct, frozen=True):
    """A step of the model's plan."""

    content: str
    status: PlanStatus


class UserAnswer(msgspec.Struct, frozen=True):
    """The user's answer to a question."""

    action: Literal["accept", "decline", "cancel"]
    values: JsonObject = {}


class OutputLibrary(Protocol):
    """The index, as one tool call may use it."""

    async def keep(self, text: str, label: str, kind: SourceKind, *, path: str | None = None) -> Source:
        """Store a text in the index; it can be searched at once."""

    def hits_by_default(self) -> int:
        """Return how many hits a query has that names no limit."""

    async def search(
        self,
        queries: Sequence[str],
        *,
        scope: SearchScope = "chat",
        source: str | None = None,
        kind: SourceKind | None = None,
        limit: int = 5,
        max_tokens: int = 1200,
    ) -> list[Results]:
        """Return one answer per query, together within `max_tokens`; `source` is the id or the exact label of a
        source.
        """

    async def read(self, id: str, lines: tuple[int, int] | None = None) -> SourceText:
        """Return the text of a source or a hit, in full or some lines; raise ToolError when there is none."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, as the index counts them."""

    async def preview(self, text: str, source: Source, intent: str | None = None) -> str:
        """Return what replaces a text in the context window: some of its lines, and how to read the others."""

    async def add_path(self, path: str) -> tuple[list[Source], list[tuple[str, str]]]:
        """Store a file, or the files of a folder; return those that were stored, and the others with the reason."""


class ToolContext(Protocol):
    """What a tool may use during one call."""

    @property
    def library(self) -> OutputLibrary:
        """The index; raises ToolError when it is disabled."""

    @property
    def workspace(self) -> Workspace:
        """The folders of the project; raises ToolError when the chat has no project."""

    @property
    def call_key(self) -> str:
        """A unique key of this call. Child processes carry it in their environment, so that survivors can be found."""

    @property
    def writes_buffers(self) -> bool:
        """Whether the app writes files of which its editor has unsaved text."""

    @property
    def refused(self) -> Mapping[int, str]:
        """Of an intent with parts: those that were denied, and the reason for the model."""

    @property
    def hidden_files(self) -> Sequence[str]:
        """The files, by their real paths, that a command of this call must not read: a rule withholds them, and nobody
        was asked.
        """

    async def request_permission(self, intent: Intent) -> Permission:
        """Check a permission, by rule or by asking the user. The planned action was approved before the call started;
        use this for what turns up later, such as a redirect.
        """

    async def read_filter(self, granted: str | None = None) -> ReadFilter:
        """Return the rules for files beneath the `granted` path, or for all files when it is None."""

    def seen(self, path: str) -> str | None:
        """Return the sha256 of the bytes that the model last saw of the file; None when it has not seen the file."""

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        """Run a blocking function in a thread. A cancelled turn does not wait for the thread."""

    async def show(self, text: str) -> None:
        """Show a piece of the output to the user while the tool runs."""

    async def ask(self, message: str, schema: JsonObject) -> UserAnswer | None:
        """Ask the user a question with a flat form; None when no client can ask."""

    async def plan(self, entries: list[PlanEntry]) -> None:
        """Show the model's plan."""

    async def call_app(self, name: str, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """Have the app run a call of a tool that it offers."""

    async def unsaved_text(self, path: str) -> str | None:
        """Return the unsaved text of a file that is open in the app's editor; None when there is none."""


class Tool(Protocol):
    """`runs_alone` says that it must not run in parallel with other calls; `title` is what the user reads meanwhile."""

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def kind(self) -> ToolKind: ...
    @property
    def runs_alone(self) -> bool: ...

    def title(self, input: ToolInput) -> str: ...
    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall: ...
