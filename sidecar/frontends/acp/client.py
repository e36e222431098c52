"""Requests to the editor, over the same pipe: permissions, forms, and the text of its buffers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, get_args

from sidecar_protocol.errors import RpcError

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
from ...model.content import InputAction, UserDecision
from ...model.failures import Failure
from ...tools.base import ToolOutcome
from . import tool_updates
from .content import text_block
from .messages import InitializeParams, Update
from .terminal import Terminal

DECISIONS: tuple[UserDecision, ...] = get_args(UserDecision)
ACTIONS: tuple[InputAction, ...] = get_args(InputAction)

OPTION_KINDS: dict[UserDecision, str] = {
    "allow_once": "allow_once",
    "allow_chat": "allow_always",
    "allow_always": "allow_always",
    "deny_once": "reject_once",
    "deny_always": "reject_always",
}
"""The protocol has no kind for an answer that holds for one session."""

TERMINAL_TOOL = "run_in_terminal"
"""The tool by which `chat` asks for a command in a terminal of the app."""

MAX_SUBJECT = 2000
"""Characters of a command or path in a question: more is not read."""

SendRequest = Callable[[str, Any], Awaitable[Any]]


class QuestionContext(Protocol):
    """What a question needs of the chat that it is about."""

    async def wait_sent(self, session_id: str) -> None:
        """Wait until the client has got what led to the question."""

    def project(self, session_id: str) -> str | None: ...

    def show(self, session_id: str, update: Update) -> None:
        """Send an update that is no event."""

    async def texts(self, refs: Sequence[str]) -> dict[str, str]:
        """The texts of stored files."""


class AcpClientApp:
    """Implements `ClientApp` for `chat`. `request` sends a request over the wire and waits for its answer."""

    def __init__(self, request: SendRequest, context: QuestionContext) -> None:
        self._request = request
        self._context = context
        self._version = 1
        self._capabilities: JsonObject = {}

    def on_initialize(self, version: int, params: InitializeParams) -> None:
        self._version = version
        self._capabilities = (params.client_capabilities if version == 1 else params.capabilities) or {}

    def offers(self, *path: str) -> bool:
        """Whether the client has a capability: true, or an object."""
        found: Any = self._capabilities
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found is True or isinstance(found, dict)

    def can(self, capability: Capability) -> bool:
        match capability:
            case "permissions":
                return True
            case "input":
                return self.offers("elicitation", "form")
            case "buffers":
                return self._version == 1 and self.offers("fs", "readTextFile")
            case "terminals":
                return self._version == 1 and self.offers("terminal")
            case "buffer_writes":
                return self.can("buffers") and self.offers("fs", "writeTextFile")
        return False

    @property
    def tools(self) -> list[OfferedTool]:
        return []

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        project = self._context.project(request.session_id)
        refs = [ref for change in request.changes for ref in (change.old_ref, change.new_ref) if ref]
        texts = await self._context.texts(refs)
        await self._context.wait_sent(request.session_id)
        answer = await self._ask("session/request_permission", self._question(request, project, texts))
        outcome = answer.get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        if isinstance(outcome, dict) and outcome.get("outcome") == "cancelled":
            return PermissionAnswer("deny_once", by="cancel")
        offered = [option.decision for option in request.options]
        if chosen not in offered:
            raise Failure(
                "invalid_params", f"`optionId`: {str(chosen)[:80]!r} is not one of {', '.join(offered)}"
            )
        return PermissionAnswer(chosen)

    async def ask_input(self, request: InputRequest) -> InputAnswer:
        if not self.can("input"):
            raise CannotAsk("The editor shows no forms.")
        await self._context.wait_sent(request.session_id)
        answer = await self._ask(
            "elicitation/create",
            {
                "mode": "form",
                "sessionId": request.session_id,
                "toolCallId": request.item_id,
                "message": request.message,
                "requestedSchema": {"type": "object", "properties": {}} | request.schema,
            },
        )
        action, values = answer.get("action"), answer.get("content")
        if action not in ACTIONS:
            raise Failure(
                "invalid_params", f"`action`: {str(action)[:80]!r} is not one of {', '.join(ACTIONS)}"
            )
        return InputAnswer(action, values if isinstance(values, dict) else None)

    async def call_tool(self, request: AppToolCall) -> ToolOutcome:
        if request.name != TERMINAL_TOOL:
            raise Failure("internal_error", "An editor offers no tools of its own")
        return await Terminal(self._ask, self._context.show, request).run()

    async def read_buffer(self, request: BufferRequest) -> str | None:
        answer = await self._ask("fs/read_text_file", {"sessionId": request.session_id, "path": request.path})
        text = answer.get("content")
        return text if isinstance(text, str) else None

    async def write_buffer(self, request: BufferWrite) -> None:
        await self._ask(
            "fs/write_text_file",
            {"sessionId": request.session_id, "path": request.path, "content": request.text},
        )

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        try:
            answer = await self._request(method, params)
        except RpcError as error:
            raise Failure(
                "internal_error", f"The editor answered {method} with an error: {error.message}"
            ) from error
        return answer if isinstance(answer, dict) else {}

    def _question(self, request: PermissionRequest, project: str | None, texts: dict[str, str]) -> JsonObject:
        call: JsonObject = {
            "toolCallId": request.item_id,
            "title": request.title,
            "content": [
                *tool_updates.diffs(request.changes, project, self._version, texts),
                {"type": "content", "content": text_block(question_text(request))},
            ],
            "locations": [
                {"path": tool_updates.absolute(change.path, project)} for change in request.changes
            ],
        }
        options = [
            {
                "optionId": option.decision,
                "name": f"{option.label} ({option.rule})" if option.rule else option.label,
                "kind": OPTION_KINDS[option.decision],
            }
            for option in request.options
        ]
        if self._version == 1:
            return {
                "sessionId": request.session_id,
                "toolCall": {**call, "status": "pending"},
                "options": options,
            }
        return {
            "sessionId": request.session_id,
            "title": request.title,
            "description": question_text(request),
            "subject": {"type": "tool_call", "toolCall": {**call, "status": "paused"}},
            "options": options,
        }


def question_text(request: PermissionRequest) -> str:
    """What is asked, and why; a command says where it would run."""
    parts = [] if request.kind == "edit" else [tool_updates.fenced(request.subject[:MAX_SUBJECT])]
    if request.folder and request.folder != ".":
        parts.append(f"In the folder `{request.folder}`.")
    if request.sandbox is not None and not request.sandbox.active:
        why = f": {request.sandbox.reason}" if request.sandbox.reason else ""
        parts.append(f"**It runs outside the sandbox**{why}.")
    return "\n\n".join([*parts, f"Asked because {request.reason}."])
