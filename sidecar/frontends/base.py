"""The interface between the server and a frontend: what a frontend gets, and what the server asks of it.

A frontend speaks one dialect to the client of this process. It decodes, calls `chat`, and encodes; it decides nothing.
Only types: imported for the type checker alone, so that a start loads nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict

from sidecar_protocol.framing import Frame

from ..chat.journal.identity import ChatAddress
from ..chat.services.client_app import ClientApp
from ..chat.sessions.chats import Chats
from ..chat.sessions.session import Session
from ..model.checks import Check
from ..providers.base import ModelEntry
from ..providers.endpoints import Endpoints
from ..providers.local.fetch import FetchedModel
from ..settings import Settings, SettingsFile
from ..system import trusted_files

StatusData = Mapping[str, object]
"""The data of a `status`; only encoded."""


class InitializeResult(TypedDict):
    version: int
    server: dict[str, str]
    instanceId: str
    capabilities: dict[str, Any]
    limits: dict[str, int]


class PingResult(TypedDict):
    now: int
    uptimeMs: int
    instanceId: str
    inflight: int


class ChatIds(TypedDict, total=False):
    """The ids of a chat, as far as they are known; errors carry them."""

    sessionId: str
    chatId: str | None


class Providers(Protocol):
    """What the process offers about its providers."""

    @property
    def connections(self) -> Endpoints: ...
    async def test_provider(self, name: str) -> list[str]: ...
    def models_changed(self, provider: str) -> None: ...
    def cancel_loading(self, operation_id: str) -> None: ...
    async def fetch_model(self, name: str, report: Callable[[int, int], None]) -> FetchedModel: ...


class System(Providers, Protocol):
    """What the process offers besides its chats."""

    def settings(self, project: str | None) -> Settings: ...
    def read_scope(self, scope: Any, project: str | None) -> SettingsFile: ...
    def write_settings(
        self, scope: Any, project: str | None, changes: Mapping[str, Any], expected_version: str | None
    ) -> None: ...
    def record_trust(self, project: str, files: trusted_files.TrustRecord | None) -> None: ...
    def is_trusted(self, project: str) -> bool: ...
    def trust_changes(self, project: str) -> list[trusted_files.TrustedChange]: ...
    def describe(self, address: ChatAddress) -> ChatIds: ...
    async def models(self, provider: str | None) -> list[ModelEntry]: ...
    async def default_model(self) -> str | None: ...
    async def checks(self) -> list[Check]: ...
    async def report(self, path: str, redact: bool, overwrite: bool) -> tuple[int, list[str]]: ...


class Host(Protocol):
    """The process that a frontend serves."""

    @property
    def system(self) -> System: ...

    async def opened_chats(self) -> Chats:
        """The chats, once the database is open; raises the reason while it cannot be opened."""

    def client_connected(self, name: str, pid: int | None) -> None:
        """Take the name of the connected app; the process exits when the app's process `pid` is gone."""

    async def shut_down(self, grace_ms: int) -> Sequence[Session]:
        """Let turns end for at most `grace_ms`, interrupt the others, refuse new requests; return all sessions."""

    def begin_exit(self, code: int) -> None:
        """Start the shutdown of the process; the first reason decides the exit code."""


class EarlyAnswers(Protocol):
    """The answers of the native dialect that the bootstrap also gives before the server has started."""

    def initialize_result(self) -> InitializeResult: ...
    def ping(self, inflight: int) -> PingResult: ...


class Frontend(Protocol):
    """One dialect on the connection to the client. Every request gets exactly one answer."""

    @property
    def app(self) -> ClientApp:
        """The connected app, for the requests of turns."""

    def receive(self, frame: Frame) -> None:
        """Take the next frame; must not block."""

    def send_status(self, type: str, data: StatusData) -> None:
        """Report what belongs to no chat, in the words of the native `status`; a dialect without such a message
        ignores it.
        """

    def report_access(self, session: Session) -> None:
        """Report that another process began or ceased to write to a chat, if the client has it open."""

    def reset(self) -> None:
        """Stop following chats, because the database was replaced."""

    def refuse(self) -> None:
        """From now on refuse new requests, and fail requests to the app, because the process shuts down."""

    async def idle(self) -> None:
        """Wait until every request that was received is answered."""

    def abandon(self) -> None:
        """Answer without waiting what is still open, because the process exits now."""
