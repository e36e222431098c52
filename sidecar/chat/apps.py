"""The app at the other end of the pipe, as far as a turn may ask it something. Knows no wire."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from ..tools.base import Kind

Capability = Literal["permissions", "input", "buffers"]


class Offered(msgspec.Struct, frozen=True):
    """A tool of the app that the model may call."""

    name: str
    description: str
    input_schema: dict[str, Any]
    kind: Kind
    timeout_ms: int | None


class App(Protocol):
    """Each request raises a Failure when the app fails to answer; cancelling the wait takes the request back."""

    def can(self, capability: Capability) -> bool: ...

    @property
    def tools(self) -> list[Offered]: ...

    async def ask_permission(self, request: dict[str, Any]) -> dict[str, Any]: ...
    async def ask_input(self, request: dict[str, Any]) -> dict[str, Any]: ...
    async def call_tool(self, request: dict[str, Any]) -> dict[str, Any]: ...
    async def read_buffer(self, request: dict[str, Any]) -> dict[str, Any]: ...
