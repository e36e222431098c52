"""Questions of the sidecar, passed from the thread of the client to that of the terminal and back.

One question after another, whatever their number. Knows neither how they are shown nor who answers.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue

import anyio
from sidecar_client import InputAnswer, InputRequest, PermissionAnswer, PermissionRequest

UserRequest = PermissionRequest | InputRequest
RequestAnswer = PermissionAnswer | InputAnswer


class OpenQuestion:
    """One request. `over` once nobody waits for its answer any more."""

    def __init__(self, request: UserRequest) -> None:
        self.request = request
        self.over = False
        self._answered = anyio.Event()
        self._reply: RequestAnswer | None = None

    @property
    def id(self) -> str:
        request = self.request
        return request.permission_id if isinstance(request, PermissionRequest) else request.input_id

    async def settle(self, reply: RequestAnswer) -> None:
        """Set the answer; in the thread of the client."""
        self._reply = reply
        self._answered.set()

    async def wait_reply(self) -> RequestAnswer:
        await self._answered.wait()
        assert self._reply is not None
        return self._reply


class Questions:
    """Handlers for the client; `next` and `wake` are for the thread of the terminal."""

    def __init__(self) -> None:
        # Unbounded: every question in it is a tool call that waits, and the sidecar runs few at once.
        self._asked: SimpleQueue[OpenQuestion | None] = SimpleQueue()

    async def permission(self, request: PermissionRequest) -> PermissionAnswer:
        reply = await self._ask(request)
        assert isinstance(reply, PermissionAnswer)
        return reply

    async def input(self, request: InputRequest) -> InputAnswer:
        reply = await self._ask(request)
        assert isinstance(reply, InputAnswer)
        return reply

    def next(self, seconds: float) -> OpenQuestion | None:
        """Return the next pending question; None after the timeout, or after `wake`."""
        with suppress(Empty):
            question = self._asked.get(timeout=seconds)
            return None if question is None or question.over else question
        return None

    def wake(self) -> None:
        """Make `next` return."""
        self._asked.put(None)

    async def _ask(self, request: UserRequest) -> RequestAnswer:
        question = OpenQuestion(request)
        self._asked.put(question)
        try:
            return await question.wait_reply()
        finally:
            question.over = True
