"""What the app answers when the sidecar asks: permissions, inputs, calls of the app's own tools, unsaved text.

Each handler is a plain async function that gets the request. It is cancelled when its answer is no longer needed:
somebody else decided, the turn was cancelled, or the sidecar is gone. One that raises never grants anything.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import REQUESTS
from sidecar_protocol.errors import RpcError
from sidecar_protocol.peer import Call

logger = logging.getLogger(__name__)

OnPermission = Callable[[m.PermissionRequest], Awaitable[m.Decision | m.PermissionAnswer]]
OnInput = Callable[[m.InputRequest], Awaitable[dict[str, Any] | m.InputAnswer | None]]
OnToolCall = Callable[[m.ToolCallRequest], Awaitable[str | list[dict[str, Any]] | m.ToolCallResult]]
OnReadBuffer = Callable[[m.ReadBufferRequest], Awaitable[str | None]]


class Tool:
    """A tool of the app that the model may call. `handler` gets the call and returns what the model reads: text,
    content blocks, or a whole result. The model gets what it raises as a failure."""

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        handler: OnToolCall,
        *,
        kind: str = "other",
        timeout_ms: int | None = None,
    ) -> None:
        self.handler = handler
        self.offer = m.OfferedTool(
            name=name, description=description, input_schema=input_schema, kind=kind, timeout_ms=timeout_ms
        )


class Handlers:
    """The app's handlers. What there is none for is not offered to the sidecar.

    `on_permission` returns a decision (`"allow_once"`, …) or a `PermissionAnswer`; `on_input` the values of the form,
    an `InputAnswer`, or None when it was put away; `on_read_buffer` the unsaved text of a file, or None.
    """

    def __init__(
        self,
        *,
        on_permission: OnPermission | None = None,
        on_input: OnInput | None = None,
        on_read_buffer: OnReadBuffer | None = None,
        tools: Sequence[Tool] = (),
    ) -> None:
        self._serve: dict[str, Callable[[Any], Awaitable[Any]]] = {"tool/call": self._call}
        if on_permission is not None:
            self._serve["permission/request"] = partial(_permit, on_permission)
        if on_input is not None:
            self._serve["input/request"] = partial(_fill_in, on_input)
        if on_read_buffer is not None:
            self._serve["fs/readBuffer"] = partial(_read, on_read_buffer)
        self.offer(tools)

    @property
    def capabilities(self) -> m.ClientCapabilities:
        return m.ClientCapabilities(
            permissions="permission/request" in self._serve,
            input="input/request" in self._serve,
            buffers="fs/readBuffer" in self._serve,
        )

    @property
    def tools(self) -> list[Tool]:
        return list(self._tools.values())

    @property
    def offered(self) -> list[m.OfferedTool]:
        return [tool.offer for tool in self.tools]

    def offer(self, tools: Sequence[Tool]) -> None:
        """From now on these are the app's tools."""
        self._tools = {tool.offer.name: tool for tool in tools}

    async def serve(self, call: Call) -> Any:
        """Answer a request of the sidecar; what this client does not offer is refused by name."""
        if call.method not in self._serve:
            raise _not_offered(call.method)
        try:
            request = msgspec.convert(call.params, REQUESTS[call.method].params)
        except msgspec.ValidationError as error:
            raise RpcError.named("invalid_params", str(error)) from error
        return await self._serve[call.method](request)

    async def _call(self, request: m.ToolCallRequest) -> m.ToolCallResult:
        if request.name not in self._tools:
            raise _not_offered(f"tool {request.name}")
        return await _use(self._tools[request.name].handler, request)


def _not_offered(what: str) -> RpcError:
    return RpcError.named("method_not_found", f"This client offers no {what}")


async def _permit(handler: OnPermission, request: m.PermissionRequest) -> m.PermissionAnswer:
    try:
        given = await handler(request)
        answer = given if isinstance(given, m.PermissionAnswer) else {"decision": given}
        return msgspec.convert(answer, m.PermissionAnswer, from_attributes=True)
    except Exception:
        logger.exception("the handler of permissions failed: denied")
        return m.PermissionAnswer(decision="deny_once", feedback="The app could not ask its user.")


async def _fill_in(handler: OnInput, request: m.InputRequest) -> m.InputAnswer:
    try:
        given = await handler(request)
        if given is None:
            return m.InputAnswer(action="cancel")
        return given if isinstance(given, m.InputAnswer) else m.InputAnswer(action="accept", values=given)
    except Exception:
        logger.exception("the handler of inputs failed: cancelled")
        return m.InputAnswer(action="cancel")


async def _use(handler: OnToolCall, request: m.ToolCallRequest) -> m.ToolCallResult:
    try:
        given = await handler(request)
    except Exception as error:
        logger.exception("the tool %s failed", request.name)
        return m.ToolCallResult(content=_text(f"{type(error).__name__}: {error}"), is_error=True)
    if isinstance(given, m.ToolCallResult):
        return given
    return m.ToolCallResult(content=_text(given) if isinstance(given, str) else given)


async def _read(handler: OnReadBuffer, request: m.ReadBufferRequest) -> m.ReadBufferResult:
    try:
        return m.ReadBufferResult(text=await handler(request))
    except Exception as error:
        # Not null, which would say that the file on disk is what the user sees.
        logger.exception("the handler of buffers failed")
        raise RpcError.named("internal_error", "The app could not read its editor's text") from error


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]
