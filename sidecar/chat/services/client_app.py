"""The connected app, as far as a turn may send it requests. Does not know the wire."""

from __future__ import annotations

from typing import Literal, Protocol, TypedDict

import msgspec

from ...model import JsonObject
from ...model.content import InputAction, JournalValue, ResolvedBy, Rewritten, UserDecision
from ...model.failures import Failure
from ...model.files import Change
from ...tools.base import Confinement, ToolKind, ToolOutcome

Capability = Literal["permissions", "input", "buffers", "buffer_writes", "terminals"]
"""What an app can do for a turn: `buffers` reads the unsaved text of its editor, `buffer_writes` replaces it;
`terminals` run commands, as the tool `run_in_terminal` of the app."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool of the app that the model may call."""

    name: str
    description: str
    input_schema: JsonObject
    kind: ToolKind
    timeout_ms: int | None


class CallAddress(JournalValue, kw_only=True, frozen=True):
    """Which call of which chat a request is about."""

    session_id: str
    chat_id: str | None
    turn_id: str
    item_id: str


class AddressMembers(TypedDict):
    """The members of `CallAddress`, for the constructors of its subclasses."""

    session_id: str
    chat_id: str | None
    turn_id: str
    item_id: str


class PermissionOption(JournalValue, kw_only=True, frozen=True):
    """An answer to offer; `rule` is the rule that it adds."""

    decision: UserDecision
    label: str
    rule: str | None = None


class PermissionRequest(CallAddress, kw_only=True, frozen=True):
    """A tool call that waits for a permission: the data of `permission.requested`."""

    permission_id: str
    kind: str
    title: str
    subject: str
    reason: str
    changes: list[Change]
    options: list[PermissionOption]
    folder: str | None = None
    language: str | None = None
    sandbox: Confinement | None = None
    rewritten: Rewritten | None = None
    hook: str | None = None
    reason_code: str | None = None
    expires_at: int | None = None


class InputRequest(CallAddress, kw_only=True, frozen=True):
    """A question of the model to the user: the data of `input.requested`."""

    input_id: str
    message: str
    schema: JsonObject


class AppToolCall(CallAddress, kw_only=True, frozen=True):
    """A call of a tool of the app."""

    name: str
    arguments: JsonObject


class BufferRequest(JournalValue, kw_only=True, frozen=True):
    """Asks for the unsaved text of a file in the app's editor."""

    session_id: str
    chat_id: str | None
    path: str


class BufferWrite(BufferRequest, kw_only=True, frozen=True):
    """Asks to replace the text of a file in the app's editor, and to save it."""

    text: str


class PermissionAnswer(msgspec.Struct, frozen=True):
    """A decision, and what the user added to it."""

    decision: UserDecision
    feedback: str | None = None
    then: Literal["stop"] | None = None
    by: ResolvedBy = "user"


class InputAnswer(msgspec.Struct, frozen=True):
    """What was done with a form, and its values."""

    action: InputAction
    values: JsonObject | None = None
    by: ResolvedBy = "user"


class CannotAsk(Failure):
    """The client cannot ask its user about this; the message tells the model what to do."""

    def __init__(self, message: str) -> None:
        super().__init__("denied", message)


class ClientApp(Protocol):
    """The connected app. A request raises a Failure when the app fails to answer, or answers with something else;
    cancelling the wait withdraws it."""

    def can(self, capability: Capability) -> bool: ...

    @property
    def tools(self) -> list[OfferedTool]: ...

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer: ...
    async def ask_input(self, request: InputRequest) -> InputAnswer: ...
    async def call_tool(self, request: AppToolCall) -> ToolOutcome: ...
    async def read_buffer(self, request: BufferRequest) -> str | None: ...
    async def write_buffer(self, request: BufferWrite) -> None: ...
