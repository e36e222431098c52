"""The interface between the engine and a tool: what a tool gets in hand, what it asks leave for, what it answers.

A tool plans first and acts then. `prepare` looks and computes and changes nothing; what it wants to do stands in
a `Need`, which a person or a rule may refuse. Files are not written by tools at all: a tool names the bytes
before and after (`Edit`), and one place writes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from ..model.figures import Measured
from ..model.index import Results, Scope, Source, SourceKind, Whole
from ..providers.base import ToolSpec
from ..workspace.paths import Workspace

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""What a tool does, in the words of the contract; an app chooses its icon by it."""

Leave = Literal["read", "edit", "run", "fetch", "mcp", "app-tool"]
"""What leave is given or refused for."""

T = TypeVar("T")


class Edit(msgspec.Struct, frozen=True):
    """A file's bytes before and after, where None is no file; `path` is relative to the project. `mode` are the
    permission bits of a file that comes back."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None


class Need(msgspec.Struct, frozen=True):
    """What a call wants to do: the path, command line, address or tool (`subject`), and the edits it has planned.

    `folder` is where a command would run, relative to the project. `reads_only` is said of a foreign tool that
    claims to change nothing. `after` is the address that this call was given leave for, and which led to this one.
    `language` says that `subject` is code under a heading. `parts` are labelled commands that each need leave of their
    own, in the place of the subject; `Hands.refused` tells which got none.
    """

    kind: Leave
    subject: str
    edits: tuple[Edit, ...] = ()
    folder: str | None = None
    reads_only: bool = False
    after: str | None = None
    language: str | None = None
    parts: tuple[tuple[str, str], ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """Whether a call may be carried out; `words` tell the model why not, or what the user adds."""

    allowed: bool
    words: str = ""
    denial: dict[str, str] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What a tool answers the model.

    `paths` are the files that it looked at, relative to the project; `seen` the sha256 of those whose bytes the
    model now knows; `matched` those that a search found; `whole` the output in full, when `text` is a part.

    `shown` says that the text is what the model asked to see: it is sent as it is, not by a preview. `source` is the
    index's name for the whole when the tool has kept it itself.
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
    """Why the call was not carried out (`policy/denials`)."""
    shown: bool = False
    source: str | None = None
    measured: Measured | None = None
    """What the call kept out of the window, for the statistics."""


class Ready(msgspec.Struct, frozen=True):
    """A call that could be carried out: the leave it needs, and how it is done once that is given."""

    need: Need
    run: Callable[[], Awaitable[Outcome]]


class Wrong(Exception):
    """The model's call cannot be carried out; the words are for the model."""


class Answer(msgspec.Struct, frozen=True):
    """What a person answered to a question."""

    action: Literal["accept", "decline", "cancel"]
    values: dict[str, Any] = {}


class Library(Protocol):
    """What is kept out of the window, as one call may use it."""

    async def keep(self, text: str, label: str, kind: SourceKind, *, path: str | None = None) -> Source:
        """Keep a text; it can be searched from now on."""

    async def search(
        self,
        queries: Sequence[str],
        *,
        scope: Scope = "chat",
        source: str | None = None,
        kind: SourceKind | None = None,
        limit: int = 5,
        max_tokens: int = 1200,
    ) -> list[Results]:
        """One answer a query, together within `max_tokens`; `source` is a source's id or exact label."""

    async def read(self, id: str, lines: tuple[int, int] | None = None) -> Whole:
        """The text of a source or a hit, whole or some lines; Wrong when there is none."""

    def count(self, text: str) -> int:
        """The tokens of a text, as the index counts them."""

    async def preview(self, text: str, source: Source, intent: str | None = None) -> str:
        """What stands for a text that is kept out of the window: some of its lines, and how to get the others."""

    async def add_path(self, path: str) -> tuple[list[Source], list[tuple[str, str]]]:
        """Keep a file, or the files of a folder: those that were kept, and those that were not with the reason."""


class Hands(Protocol):
    """What a tool may touch while one call of it runs."""

    @property
    def library(self) -> Library:
        """The index; Wrong when it is switched off."""

    @property
    def workspace(self) -> Workspace:
        """The project's folders; Wrong when the chat has none."""

    @property
    def call_key(self) -> str:
        """Names this call, in no other chat or turn; children carry it, so that none outlives it unnoticed."""

    @property
    def refused(self) -> Mapping[int, str]:
        """Of a need with parts: those that got no leave, and the words for the model."""

    async def leave(self, need: Need) -> Verdict:
        """Leave to do it, by rule or by a person. What a call planned is asked for around it; this is for what turns
        up on the way."""

    def seen(self, path: str) -> str | None:
        """The sha256 of the file's bytes as the model last saw them; None when it has not."""

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        """Run something that waits, in a thread that a cancelled turn leaves behind."""

    async def show(self, text: str) -> None:
        """Let the user watch: a piece of the output as it comes."""

    async def ask(self, message: str, schema: dict[str, Any]) -> Answer | None:
        """Ask the person a question, by a flat form; None when nobody can be asked."""

    async def plan(self, entries: list[dict[str, Any]]) -> None:
        """Show the model's plan."""

    async def call_app(self, name: str, arguments: dict[str, Any], timeout_s: float) -> Outcome:
        """Have the app carry out a call of a tool that it offers."""

    async def unsaved(self, path: str) -> str | None:
        """The unsaved text of a file that is open in the app's editor; None when there is none."""


class Tool(Protocol):
    """`title` is what a user reads while it runs; `alone` says that it may not run beside other calls."""

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def alone(self) -> bool: ...

    def title(self, input: dict[str, Any]) -> str: ...
    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready: ...


def text(input: dict[str, Any], name: str, default: str | None = None, *, empty: bool = False) -> str:
    """A text parameter of a call; `empty` text is taken only where that means something."""
    value = input.get(name, default)
    if not isinstance(value, str) or (not value and not empty):
        raise Wrong(f"`{name}` must be text.")
    return value


def number(input: dict[str, Any], name: str, default: int, *, low: int = 1) -> int:
    """A whole number of a call."""
    value = input.get(name)
    if value is None:
        return default
    if type(value) is not int or value < low:
        raise Wrong(f"`{name}` must be a whole number from {low}.")
    return value


def flag(input: dict[str, Any], name: str) -> bool:
    """A yes or no of a call; absent is no."""
    value = input.get(name)
    if value is None:
        return False
    if type(value) is not bool:
        raise Wrong(f"`{name}` must be true or false.")
    return value
