"""The frontends by name, and which of them a client's first message chooses. A frontend's modules are imported when it
is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import jsonrpc
from sidecar_protocol.framing import Frame
from sidecar_protocol.jsonrpc import Request

from ..rpc.wire import MessageWriter
from ..system.lazy import lazy_module
from .acp import greeting as acp_greeting
from .native import greeting as native_greeting

if TYPE_CHECKING:
    from . import mcp
    from .acp import frontend as acp_frontend
    from .base import EarlyAnswers, Frontend, Host
    from .native import frontend as native_frontend
else:
    acp_frontend = lazy_module("sidecar.frontends.acp.frontend")
    mcp = lazy_module("sidecar.frontends.mcp")
    native_frontend = lazy_module("sidecar.frontends.native.frontend")

MCP = "mcp"
"""The Model Context Protocol, for coding agents; a command chooses it."""


class FrontendConnection(msgspec.Struct, frozen=True):
    """What a frontend is created with: the way to the client, and the process behind it."""

    wire: MessageWriter
    tasks: TaskGroup
    host: Host
    early: EarlyAnswers
    greeting: Mapping[str, object] | None
    """The `initialize` of this dialect that the bootstrap has answered; None if it has answered none."""


class FrontendEntry(msgspec.Struct, frozen=True):
    """One dialect that the program speaks."""

    name: str
    load: Callable[[], Callable[[FrontendConnection], Frontend]]
    """Imports the frontend's modules and returns what creates it."""
    speaks: Callable[[Request], bool] | None = None
    """Whether a client whose first message is this request speaks the dialect. None: the dialect is chosen by a
    command, or because it is the default.
    """


def _load_native() -> Callable[[FrontendConnection], Frontend]:
    return native_frontend.NativeFrontend


def _load_mcp() -> Callable[[FrontendConnection], Frontend]:
    return mcp.McpFrontend


def _load_acp() -> Callable[[FrontendConnection], Frontend]:
    return acp_frontend.AcpFrontend


def _speaks_acp(first: Request) -> bool:
    return first.method == "initialize" and acp_greeting.requested_version(first.params) is not None


BUILT_IN = (
    FrontendEntry(native_greeting.NAME, _load_native),
    FrontendEntry(MCP, _load_mcp),
    FrontendEntry(acp_greeting.NAME, _load_acp, _speaks_acp),
)
"""A frontend exists because it is in this table."""


class FrontendRegistry:
    """`default` is the dialect of every first message that no other dialect claims: it answers wrong ones too."""

    def __init__(
        self, entries: Iterable[FrontendEntry] = BUILT_IN, default: str = native_greeting.NAME
    ) -> None:
        self._entries: dict[str, FrontendEntry] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise ValueError(f"two frontends are named {entry.name!r}")
            self._entries[entry.name] = entry
        self.default = self.find(default)

    def find(self, name: str) -> FrontendEntry:
        """The frontend of this name, which a command of the program chooses."""
        if name not in self._entries:
            raise ValueError(f"there is no frontend {name!r}; there are: {', '.join(self._entries)}")
        return self._entries[name]

    @property
    def needs_first_message(self) -> bool:
        """Whether the first message can choose another dialect than the default."""
        return any(entry.speaks for entry in self._entries.values())

    def choose(self, first: Frame) -> FrontendEntry:
        """The frontend for a client whose first frame this is."""
        message = jsonrpc.parse(first)
        if isinstance(message, Request):
            for entry in self._entries.values():
                if entry.speaks and entry.speaks(message):
                    return entry
        return self.default
