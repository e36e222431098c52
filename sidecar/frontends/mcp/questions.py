"""What the host's user is asked about a call: permissions, and forms of the model, by elicitation.

In the versions with a handshake the server sends a request. In the newer ones it may not: the call is answered with
`input_required`, goes on waiting here, and the client's next request brings the answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

import anyio
import msgspec

from ...chat.services.client_app import (
    AppToolCall,
    BufferRequest,
    BufferWrite,
    CannotAsk,
    Capability,
    InputAnswer,
    InputRequest,
    OfferedTool,
    PermissionAnswer,
    PermissionRequest,
)
from ...model import JsonObject
from ...model.content import InputAction
from ...model.failures import Failure
from ...tools.base import ToolOutcome
from .messages import Schema

INPUT_ACTIONS = get_args(InputAction)


class FormAnswer(msgspec.Struct, frozen=True):
    """What the user did with a form; `values` only when it was filled in."""

    action: Any
    values: JsonObject | None


NOT_ANSWERED = FormAnswer("cancel", None)

Form = Mapping[str, object]
"""The JSON Schema of a flat form: one of ours, or the model's."""

Elicit = Callable[[str, Form], Awaitable[FormAnswer]]
"""Shows a form with this message."""

_ALLOW: Schema = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Allow this?",
            "enum": ["allow_once", "allow_chat", "deny_once"],
            "enumNames": ["Allow once", "Allow in this session", "Deny"],
        }
    },
    "required": ["decision"],
}

MAX_SUBJECT = 2000
"""Characters of a command or path in a question: more is not read, and a form does not scroll."""


class AgentApp:
    """Implements `ClientApp` for one call of an agent. `elicit` is None when the host cannot ask its user."""

    def __init__(self, elicit: Elicit | None) -> None:
        self._elicit = elicit

    @property
    def tools(self) -> list[OfferedTool]:
        return []

    def can(self, capability: Capability) -> bool:
        """Permissions are asked here also when the host cannot: the refusal names the rule that would allow it."""
        return capability == "permissions" or (capability == "input" and self._elicit is not None)

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        if self._elicit is None:
            raise CannotAsk(_cannot_ask(request))
        answer = await self._elicit(_question(request), _ALLOW)
        decision = answer.values.get("decision") if answer.values and answer.action == "accept" else None
        return PermissionAnswer(decision if decision in ("allow_once", "allow_chat") else "deny_once")

    async def ask_input(self, request: InputRequest) -> InputAnswer:
        if self._elicit is None:
            raise CannotAsk("The host cannot ask its user.")
        answer = await self._elicit(request.message, request.schema)
        if answer.action not in INPUT_ACTIONS:
            raise Failure(
                "invalid_params",
                f"`action`: {str(answer.action)[:80]!r} is not one of accept, decline, cancel",
            )
        return InputAnswer(answer.action, answer.values)

    async def confirm(self, message: str, schema: Form) -> Mapping[str, object]:
        """Ask the user about a call itself; the values of the form, empty when it was not filled in."""
        if self._elicit is None:
            return {}
        answer = await self._elicit(message, schema)
        return answer.values if answer.action == "accept" and answer.values else {}

    async def call_tool(self, request: AppToolCall) -> ToolOutcome:
        raise Failure("internal_error", "An agent offers no tools of its own")

    async def read_buffer(self, request: BufferRequest) -> str | None:
        raise Failure("internal_error", "An agent has no editor buffers")

    async def write_buffer(self, request: BufferWrite) -> None:
        raise Failure("internal_error", "An agent has no editor buffers")


class ElicitedForm:
    """A form that waits for its answer."""

    def __init__(self, message: str, schema: Form) -> None:
        self.message = message
        self.schema = schema
        self._answer: FormAnswer | None = None
        self._answered = anyio.Event()

    def answer(self, answer: FormAnswer) -> None:
        if self._answer is None:
            self._answer = answer
            self._answered.set()

    async def wait(self) -> FormAnswer:
        await self._answered.wait()
        assert self._answer is not None
        return self._answer


def read_answer(answer: object) -> FormAnswer:
    """Return the host's answer to a form; one that is no object cancels it."""
    if not isinstance(answer, dict):
        return NOT_ANSWERED
    content = answer.get("content")
    return FormAnswer(answer.get("action"), content if isinstance(content, dict) else None)


def new_state() -> str:
    """An unguessable name for a call that waits for an answer."""
    return secrets.token_urlsafe(18)


def _question(request: PermissionRequest) -> str:
    sandbox = "" if request.sandbox is None or request.sandbox.active else "\nIt would run without a sandbox."
    return f"{request.title}\n\n{request.subject[:MAX_SUBJECT]}\n\nAsked because: {request.reason}.{sandbox}"


def _cannot_ask(request: PermissionRequest) -> str:
    rule = next((option.rule for option in request.options if option.decision == "allow_always"), None)
    remedy = (
        f"The user can allow it by the rule {rule} in `permissions.allow` of Sidecar's settings."
        if rule
        else "No rule can allow it; the user must do it."
    )
    return f"This needs the user's permission ({request.reason}), and the host cannot ask for it. {remedy}"
