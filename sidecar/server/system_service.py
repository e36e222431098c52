"""What the process offers besides its chats: settings, trust, providers and models, and checks of itself. Knows no
connection and no shutdown.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import settings as configuration
from ..chat.journal import identity
from ..chat.journal.identity import ChatAddress
from ..chat.sessions.chats import Chats
from ..model.failures import Failure, ProviderFailed
from ..providers.base import ModelEntry
from ..providers.endpoints import Endpoints
from ..providers.registry import ProviderRegistry
from ..settings import MEMORY, Settings, SettingsError, SettingsFile
from ..settings.files import default_data_dir
from ..store import Store
from ..system import trusted_files
from ..system.launch import ServeOptions
from ..system.lazy import lazy_module
from .settings_cache import EffectiveSettings

if TYPE_CHECKING:
    from ..frontends.base import ChatIds
    from ..model.checks import Check
    from ..providers.local import fetch
    from ..providers.local.fetch import FetchedModel
    from ..tools import mcp
    from . import doctor
else:
    fetch = lazy_module("sidecar.providers.local.fetch")
    doctor = lazy_module("sidecar.server.doctor")


LOADING = "load:local:"
"""Begins the `operationId` of loading a model, which is no request of the client."""


class SystemService:
    """Implements `System` of `frontends/base.py`. `opened_chats` opens the database, `servers` returns the MCP servers
    if there are any, and `send_status` sends a status to the client.
    """

    def __init__(
        self,
        options: ServeOptions,
        opened_chats: Callable[[], Awaitable[Chats]],
        servers: Callable[[], mcp.Servers | None],
        send_status: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._options = options
        self._opened_chats = opened_chats
        self._servers = servers
        self._send_status = send_status
        self.chats: Chats | None = None
        """Set once the database is open."""
        self.settings_cache = EffectiveSettings(options, self._report_lapse)
        self.connections = Endpoints(lambda: self.settings(None), os.environ)
        self.providers = ProviderRegistry(self.connections, self._models_dir, self._report_loading)

    def settings(self, project: str | None) -> Settings:
        """The effective settings of a project."""
        return self.settings_cache.for_project(project)

    def read_scope(self, scope: Any, project: str | None) -> SettingsFile:
        return configuration.read_scope(scope, project)

    def write_settings(
        self, scope: Any, project: str | None, changes: Mapping[str, Any], expected_version: str | None
    ) -> None:
        configuration.write_settings(scope, project, changes, expected_version)
        # Before the providers are notified: they read the settings again at once.
        self.settings_cache.forget()
        for provider in dict.fromkeys(
            name.split(".")[1] for name in changes if name.startswith("providers.")
        ):
            self.models_changed(provider)

    def record_trust(self, project: str, files: trusted_files.TrustRecord | None) -> None:
        self.settings_cache.trust(project, files)

    def is_trusted(self, project: str) -> bool:
        return self.settings_cache.is_trusted(project)

    def trust_changes(self, project: str) -> list[trusted_files.TrustedChange]:
        """What has changed in a project's files since it was trusted."""
        return self.settings_cache.changes(project)

    def _report_lapse(self, project: str) -> None:
        try:
            found = self.settings_cache.changes(project)
        except trusted_files.TooMuch as much:
            found = [(str(much), "changed", "")]
        changes = [{"path": path, "change": kind, "diff": diff} for path, kind, diff in found]
        self._send_status("trust", {"path": project, "trusted": False, "changes": changes})

    def cancel_loading(self, operation_id: str) -> None:
        if operation_id.startswith(LOADING):
            self.providers.cancel_loading(operation_id.removeprefix(LOADING))

    def _report_loading(self, model: str, done: int, total: int) -> None:
        data = {"operationId": f"{LOADING}{model}", "kind": "load", "done": done, "total": total}
        self._send_status("progress", data)

    def describe(self, address: ChatAddress) -> ChatIds:
        """The ids of the chat that an address names, as far as they are known without IO."""
        try:
            key = identity.resolve(address, self._options.chat_id or os.environ.get("SIDECAR_CHAT_ID"))
        except Failure:
            return {}
        if isinstance(key, str):
            return {"sessionId": key, "chatId": self.chats.chat_id(key) if self.chats else None}
        return {"sessionId": key.session_id, "chatId": key.chat_id}

    async def models(self, provider: str | None) -> list[ModelEntry]:
        return await self.providers.models(provider, self.settings_cache.require(None).model)

    async def default_model(self) -> str | None:
        """The model that is used when none is chosen; None when there is none."""
        try:
            return self.settings_cache.require(None).model or await self.providers.default()
        except ProviderFailed:
            return None

    async def test_provider(self, name: str) -> list[str]:
        """Ask a provider for its models; raises ProviderFailed when it does not answer."""
        return [entry.id for entry in await self.providers.test(name)]

    def models_changed(self, provider: str) -> None:
        self.providers.forget()
        self._send_status("models", {"provider": provider})

    async def fetch_model(self, name: str, report: Callable[[int, int], None]) -> FetchedModel:
        """Download a local model; raises a Failure that says why it cannot be downloaded."""
        fetched = await fetch.fetch_model(self._models_dir(), name, report)
        if fetched.fetched:
            self.models_changed("local")
        return fetched

    def _models_dir(self) -> str:
        """The folder of downloaded models; a process without storage uses the user's."""
        data_dir = self.settings(None).store.data_dir
        return os.path.join(default_data_dir() if data_dir == MEMORY else data_dir, "models")

    async def checks(self) -> list[Check]:
        try:
            settings: Settings | str = self.settings(None)
        except SettingsError as error:
            settings = str(error)
        try:
            store: Store | Failure = (await self._opened_chats()).store
        except Failure as failure:
            store = failure
        return await doctor.examine(store, settings, self._servers(), self.providers)

    async def report(self, path: str, redact: bool, overwrite: bool) -> tuple[int, list[str]]:
        try:
            values = {key: value for key, (value, _) in self.settings(None).values_and_layers().items()}
        except SettingsError:
            values = {}  # the checks report what is wrong
        return await doctor.write_report(
            path,
            await self.checks(),
            self.chats.store if self.chats else None,
            values,
            redact=redact,
            overwrite=overwrite,
        )
