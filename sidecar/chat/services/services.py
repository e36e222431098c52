"""The services that all chats share. Built once by the server; holds no chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from anyio.abc import TaskGroup

from ...engines.registry import EngineRegistry
from ...model.chats import EffectiveConfig
from ...providers.registry import ProviderRegistry
from ...settings import MEMORY
from ...store.store import Store
from .client_app import ClientApp
from .client_requests import Requests
from .project_settings import ProjectSettings

if TYPE_CHECKING:
    from ...index.index import Index
    from ...tools.mcp import Servers
    from ...tools.web.pages import PageFetcher
    from .direct_calls import DirectCall


class ChatServices(msgspec.Struct, frozen=True):
    """What all chats of this process share."""

    store: Store
    tasks: TaskGroup
    providers: ProviderRegistry
    engines: EngineRegistry
    defaults: Callable[[str | None], EffectiveConfig]
    """The default configuration of a chat, by project."""
    client: Callable[[], str]
    """The name of the connected app."""
    model_titles: Callable[[str | None], bool]
    """Whether the model is asked for titles, by project."""
    index: Callable[[], Index]
    """The index; built on first use."""
    connected_app: Callable[[], ClientApp]
    """The connected app; known once the client has chosen a dialect."""
    requests: Requests
    settings: Callable[[str | None], ProjectSettings]
    servers: Callable[[], Servers]
    web: Callable[[], PageFetcher]
    is_trusted: Callable[[str], bool]
    trusts_file: Callable[[str, str], bool]
    """Whether a file of a project is as it was when the project was trusted."""
    distrust: Callable[[Sequence[str] | None], None]
    """Stop trusting these projects, or all."""
    rules_folder: str | None
    """The folder of the user's own instruction rules."""
    user_folder: str
    """The folder of the user's settings and hooks."""
    settings_file: str | None = None
    """The settings file that the command line or the environment names."""
    direct_calls: dict[str, DirectCall] = msgspec.field(default_factory=dict)
    """Tool calls in progress that the client makes itself, by their ids."""
    answering_turns: set[str] = msgspec.field(default_factory=set)
    """The turns, of all chats, that a model is answering now."""

    @property
    def app(self) -> ClientApp:
        return self.connected_app()

    @property
    def own_folders(self) -> tuple[str, ...]:
        """The folders of the database and of the user's settings: no project is one of them or lies in one."""
        data_dir = self.store.data_dir
        return (self.user_folder,) if data_dir == MEMORY else (data_dir, self.user_folder)
