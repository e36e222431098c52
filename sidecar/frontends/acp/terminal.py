"""One command in a terminal of the editor: shown there while it runs, and killed there when its time is over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from ...chat.services.client_app import AppToolCall
from ...model import JsonObject
from ...model.failures import Failure
from ...tools.base import ToolOutcome
from .messages import Update

logger = logging.getLogger(__name__)

MAX_OUTPUT = 30 * 1024
"""Bytes of output that the editor keeps for the model: the end of it, as for other commands."""

END_S = 2.0
"""How long the editor may take to end a terminal that is not needed any more."""

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
Show = Callable[[str, Update], None]


class Terminal:
    """`show` sends an update of the session."""

    def __init__(self, ask: Ask, show: Show, request: AppToolCall) -> None:
        self._ask = ask
        self._show = show
        self._request = request

    async def run(self) -> ToolOutcome:
        arguments = self._request.arguments
        created = await self._ask(
            "terminal/create",
            {
                "sessionId": self._request.session_id,
                "command": "sh",
                "args": ["-c", arguments["command"]],
                "cwd": arguments["cwd"],
                "outputByteLimit": MAX_OUTPUT,
            },
        )
        id = created.get("terminalId")
        if not isinstance(id, str):
            raise Failure("internal_error", "The editor made no terminal")
        shown: JsonObject = {"type": "terminal", "terminalId": id}
        update = {"sessionUpdate": "tool_call_update", "toolCallId": self._request.item_id}
        self._show(self._request.session_id, {**update, "content": [shown]})
        ended = False
        try:
            status = await self._about(id, "wait_for_exit")
            ended = True
            return _outcome(await self._about(id, "output"), status)
        finally:
            with anyio.move_on_after(END_S, shield=True):
                await self._end(id, kill=not ended)

    async def _about(self, id: str, what: str) -> JsonObject:
        return await self._ask(f"terminal/{what}", {"sessionId": self._request.session_id, "terminalId": id})

    async def _end(self, id: str, *, kill: bool) -> None:
        try:
            if kill:
                await self._about(id, "kill")
            await self._about(id, "release")
        except Failure as failure:
            logger.warning("a terminal was not released", extra={"error": failure.message})


def _outcome(found: JsonObject, status: JsonObject) -> ToolOutcome:
    output, code, signal = found.get("output"), status.get("exitCode"), status.get("signal")
    code = code if type(code) is int else None
    how = f"exit code {code}" if signal is None else f"ended by {signal}"
    cut = "the beginning is left out; " if found.get("truncated") is True else ""
    line = f"[{cut}{how}; ran in the editor's terminal, outside the sandbox]"
    text = output if isinstance(output, str) else ""
    return ToolOutcome(f"{text.rstrip()}\n{line}".lstrip("\n"), failed=code != 0, exit_code=code)
