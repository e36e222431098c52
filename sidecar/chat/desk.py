"""What one chat's tools work with: the project's folders, files in view, the ledger, leave, and the app's hands.

The desk gives each call its hands (`CallHands`), and keeps what calls leave behind. It runs no turn itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread
import msgspec

from ..model.chats import Chat
from ..model.content import Item, Turn
from ..model.events import NewEvent
from ..model.failures import Failure, Refused
from ..model.index import IndexSettings, Source
from ..model.pages import FetchSettings
from ..policy.routes import Routing
from ..providers.base import ToolCall, ToolSpec
from ..store.store import Store
from ..tools.base import Tool
from ..tools.toolbox import Clerk, Result, Toolbox
from ..workspace.open_files import Limits, OpenFiles
from ..workspace.paths import Workspace
from .apps import App, Offered
from .hook_places import Place, any_there, places
from .requests import Requests
from .running import RunningTurn, now

if TYPE_CHECKING:
    from ..index.index import Index
    from ..policy.rules import Rule
    from ..tools.mcp import ServerConfig, Servers
    from ..tools.runner import SandboxMode
    from ..tools.web.pages import Web
    from .hooking import Hooking

MCP_WAIT_S = 3.0
"""How long a turn waits for servers that are still starting; it goes on without them then."""

MAX_MATCHED = 10
"""Of the files that a search found, the first so many come into view."""

MAX_SEEN = 2000
"""Files whose bytes the model has seen and that are remembered; of older ones it must look again."""


class WorkSettings(msgspec.Struct, frozen=True):
    """What the settings say about tools, for one project."""

    sandbox: SandboxMode = "auto"
    files: Limits = Limits()
    max_file_bytes: int = 1024 * 1024
    max_patches: int = 20
    max_patch_bytes: int = 200 * 1024
    rules: Sequence[Rule] = ()
    expiry_s: float | None = None
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    mcp_servers: Sequence[dict[str, Any]] = ()
    max_seconds: float | None = None
    max_tokens: int | None = None
    rules_enabled: bool = True
    """Whether instruction rules are read and sent."""
    rule_paths: Sequence[str] = ()
    max_rule_tokens: int = 4000
    compaction_target: float = 0.40
    """How full of turns a compaction leaves the budget: compact rarely and in big steps."""
    keep_turns: int = 2
    """The newest turns, which a compaction leaves as they are."""
    hooks_enabled: bool = True
    claude_hooks: bool = False
    """Whether hooks of Claude Code's own settings files run."""
    hook_paths: Sequence[str] = ()
    routing: Routing = Routing()
    """Which calls are shown a better way."""
    index: IndexSettings = IndexSettings()
    fetch: FetchSettings = FetchSettings()
    snapshot_interval: int = 10
    """Turns after which what the session has come to is kept; 0: only before a compaction and at its end."""
    max_snapshots: int = 10
    project_files: bool = False
    """Whether the project itself has files about its chats."""


class Workshop(msgspec.Struct, frozen=True):
    """What the desks of all chats share."""

    store: Store
    index: Callable[[], Index]
    """What is kept out of the windows; the first who asks wakes it."""
    app: App
    requests: Requests
    settings: Callable[[str | None], WorkSettings]
    servers: Callable[[], Servers]
    web: Callable[[], Web]
    is_trusted: Callable[[str], bool]
    distrust: Callable[[Sequence[str] | None], None]
    """These projects, or all, are trusted no more."""
    rules_folder: str | None
    """Where the user's own instruction rules are."""
    user_folder: str
    """Where the user's settings and hooks are."""
    answered: set[str] = msgspec.field(default_factory=set)
    """The turns, of all chats, that a model answers now."""


class Owner(Protocol):
    """The chat as its desk sees it."""

    chat: Chat

    @property
    def config(self) -> dict[str, Any]: ...


class Desk:
    def __init__(self, owner: Owner, workshop: Workshop) -> None:
        self._owner = owner
        self.workshop = workshop
        self._seen: dict[str, str] = {}
        self.kept_sources: dict[bytes, Source] = {}
        """What the index has of this chat's newest outputs, by label and text."""
        self._hooking: Hooking | None = None
        self.redirected: dict[str, None] = {}
        """Calls that were shown a better way, the oldest first: made again, they run."""

    def hook_places(self) -> list[Place]:
        """The files that may have hooks."""
        return places(self.workshop.user_folder, self.settings, self._owner.chat.project_path)

    def compacted(self) -> None:
        """The chat's oldest turns are sent no more."""
        if self._hooking:
            self._hooking.compacted()

    def has_hooks(self) -> bool:
        """Whether there may be any; most chats have none, and go without all that follows."""
        return any_there(self.hook_places())

    @property
    def hooking(self) -> Hooking:
        """The chat's hooks."""
        if self._hooking is None:
            from .hooking import Hooking

            self._hooking = Hooking(self)
        return self._hooking

    @property
    def chat(self) -> Chat:
        return self._owner.chat

    @property
    def config(self) -> dict[str, Any]:
        return self._owner.config

    @property
    def settings(self) -> WorkSettings:
        return self.workshop.settings(self._owner.chat.project_path)

    @property
    def files(self) -> OpenFiles:
        """The files in view."""
        return OpenFiles.from_state(self._owner.chat.open_files, self.settings.files)

    def put_files(self, files: OpenFiles) -> NewEvent:
        """Have these in view from now on; the event must be committed next."""
        state = files.state()
        self._owner.chat = msgspec.structs.replace(self._owner.chat, open_files=state)
        return NewEvent("files.updated", {"files": state})

    def workspace(self) -> Workspace | None:
        """The folders of the chat as they are now; None for a chat without a project."""
        config = self._owner.config
        project = config.get("projectPath")
        if not project:
            return None
        return Workspace(project, config.get("extraFolders") or (), self.workshop.store.own_files)

    def needed_workspace(self) -> Workspace:
        workspace = self.workspace()
        if workspace is None:
            raise Refused(
                "precondition_failed",
                "`projectPath`: this chat has no project",
                params={"field": "projectPath"},
                hint="Open the chat with a projectPath",
            )
        return workspace

    def clerk_for(self, turn: RunningTurn, call: ToolCall) -> Clerk:
        from .hands import CallHands  # a chat without tools does without the policy and the ledger

        return CallHands(self, turn, call)

    def looked(self, item: Item, result: Result) -> list[NewEvent]:
        """The files that a finished call brought into view."""
        outcome = result.outcome
        if outcome.failed or outcome.denied or not (outcome.seen or outcome.matched):
            return []
        workspace = self.workspace()
        if workspace is None:
            return []
        files, by, at = self.files, item.name or "tool", now()
        for path in [*reversed(outcome.matched[:MAX_MATCHED]), *outcome.seen]:
            try:
                real = workspace.real(path)
            except Failure:
                continue  # gone since; it was only looked at
            files = files.touched(real, by, at, seen=outcome.seen.get(path))
        for path, hash in outcome.seen.items():
            self.remember(workspace, path, hash)
        return [self.put_files(files)]

    def remember(self, workspace: Workspace, path: str, hash: str) -> None:
        """The model has seen these bytes."""
        self._seen[place_of(workspace, path)] = hash
        while len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]

    def seen(self, workspace: Workspace, path: str) -> str | None:
        known = self._seen.get(place_of(workspace, path))
        if known is None:
            try:
                known = self.files.seen_of(workspace.real(path))
            except Failure:
                return None
        return known

    async def toolbox(self) -> Toolbox:
        """The tools of a turn that begins now."""
        chosen, settings = self._owner.config.get("tools") or {}, self.settings
        tools = await self.tools(MCP_WAIT_S)
        for allow in (settings.allow, chosen.get("allow")):
            tools = [tool for tool in tools if not allow or tool.spec.name in allow]
        return Toolbox(tools, [*settings.deny, *(chosen.get("deny") or ())])

    async def tools(self, wait_s: float) -> list[Tool]:
        """All that there are: ours in a project, the app's, and those of MCP servers that answer in time."""
        tools: list[Tool] = []
        if self._owner.chat.project_path:
            tools += await ours(self.workshop, self.settings, self._owner.config.get("extraFolders") or ())
        tools += [_app_tool(offered) for offered in self.workshop.app.tools]
        servers = self.mcp_servers()
        if servers:
            tools += await self.workshop.servers().tools(servers, wait_s)
        if tools and self.settings.index.enabled and not self._owner.chat.project_path:
            from ..tools.builtin import looking_back

            tools += looking_back()
        return tools

    def mcp_servers(self) -> list[ServerConfig]:
        """The servers that the settings and the chat's configuration name; the chat's word counts."""
        named = {raw["name"]: raw for raw in self.settings.mcp_servers}
        named |= {raw["name"]: raw for raw in self._owner.config.get("mcpServers") or ()}
        if not named:
            return []
        project = self._owner.chat.project_path
        if project:
            named = {name: _in_folder(raw, project) for name, raw in named.items()}
        from ..tools.mcp import parse_servers

        return parse_servers(list(named.values()), "mcpServers")

    def warm(self) -> None:
        """Somebody looks at the chat: let its servers start."""
        servers = self.mcp_servers()
        if servers:
            self.workshop.servers().want(servers)

    def turn_ended(self, turn: RunningTurn) -> None:
        """Whoever still answers what the turn has asked is told how it ended."""
        for id, outcome in turn.unanswered.items():
            self.workshop.requests.close(id, outcome)

    async def after_crash(self, turn: Turn | None) -> list[NewEvent]:
        """What an unfinished turn has done without coming to record it; what it left running ends."""
        open_items = (
            [item for item in turn.items if item.type == "tool" and item.status == "running"] if turn else []
        )
        if not open_items:
            return []
        from ..system import children, scratch
        from . import edits

        keys = [call_key(self.chat, item) for item in open_items]
        await anyio.to_thread.run_sync(children.reap, keys)
        await anyio.to_thread.run_sync(scratch.remove_all, keys)
        try:
            workspace = self.workspace()
        except Failure:
            return []  # the project is gone, and with it all that could be looked at
        known = [entry.patch for entry in await self.workshop.store.patches(self.chat.id)]
        return await edits.settle(workspace, open_items, known)


async def ours(workshop: Workshop, settings: WorkSettings, extra_folders: Sequence[str] = ()) -> list[Tool]:
    """The tools that come with the program."""
    from ..tools import runtimes
    from ..tools.builtin import builtin

    if not runtimes.is_known():
        await anyio.to_thread.run_sync(runtimes.installed)
    hidden = [workshop.store.data_dir]
    index = settings.index
    tools = builtin(settings.sandbox, extra_folders, hidden, indexed=index.enabled, inline=index.inline_max)
    if settings.fetch.enabled:
        from ..tools.fetch_url import FetchUrl

        tools.append(FetchUrl(workshop.web, settings.fetch, settings.index.inline_max))
    return tools


def _app_tool(offered: Offered) -> Tool:
    from ..tools.app_tool import AppTool

    spec = ToolSpec(offered.name, offered.description, offered.input_schema)
    return AppTool(spec, offered.kind, offered.timeout_ms)


def _in_folder(server: dict[str, Any], project: str) -> dict[str, Any]:
    """A server that is a program runs in the project, unless it says where."""
    return server if "url" in server or "cwd" in server else {**server, "cwd": project}


def call_key(chat: Chat, item: Item) -> str:
    return f"{chat.key.session_id}.{chat.epoch}.{item.id}"


def place_of(workspace: Workspace, path: str) -> str:
    """A path as text that is the same however the model spells it."""
    place = workspace.resolve(path)
    return os.path.join(place.root, *place.parts)
