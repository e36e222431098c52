"""What one chat's tools work with: the workspace, open files, the patch ledger, permissions and the client app.

`ToolEnvironment` creates the context of each call (`CallContext`) and stores what calls share. It runs no turn.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread
import msgspec

from ...model import JsonObject, mcp_secrets
from ...model.chats import Chat, EffectiveConfig, ToolChoice
from ...model.content import Item, Turn
from ...model.events import NewEvent
from ...model.failures import Failure, Refused
from ...model.index import Source
from ...providers.base import ToolSpec
from ...system.clock import now
from ...system.lazy import lazy_module
from ...tools.base import Tool
from ...tools.toolbox import CallResult, Toolbox
from ...workspace.open_files import OpenFiles
from ...workspace.paths import Workspace
from ..hooks.locations import HookLocation, any_exist, hook_locations
from ..journal.project_identity import refuse_own_folder
from ..journal.running_turn import RunningTurn
from ..services.client_app import OfferedTool
from ..services.project_settings import ProjectSettings
from ..services.services import ChatServices

if TYPE_CHECKING:
    from ...policy import read_rules as file_rules
    from ...policy.rules import Rule
    from ...system import process_tree, programs, scratch
    from ...tools import builtin, mcp
    from ...tools.people import app_tool
    from ...tools.shell import run_in_terminal, runtimes
    from ...tools.shell import runner as shell_runner
    from ...tools.shell.runner import Bounds, Runner
    from ...tools.web import fetch_url
    from ...workspace import names as file_names
    from ..hooks import runner as hooks_runner
    from . import edits, hidden_files, permissions, sandbox_bounds
else:
    hooks_runner = lazy_module("sidecar.chat.hooks.runner")
    edits = lazy_module("sidecar.chat.tool_calls.edits")
    hidden_files = lazy_module("sidecar.chat.tool_calls.hidden_files")
    permissions = lazy_module("sidecar.chat.tool_calls.permissions")
    sandbox_bounds = lazy_module("sidecar.chat.tool_calls.sandbox_bounds")
    file_rules = lazy_module("sidecar.policy.read_rules")
    process_tree = lazy_module("sidecar.system.process_tree")
    programs = lazy_module("sidecar.system.programs")
    scratch = lazy_module("sidecar.system.scratch")
    builtin = lazy_module("sidecar.tools.builtin")
    mcp = lazy_module("sidecar.tools.mcp")
    app_tool = lazy_module("sidecar.tools.people.app_tool")
    run_in_terminal = lazy_module("sidecar.tools.shell.run_in_terminal")
    runtimes = lazy_module("sidecar.tools.shell.runtimes")
    shell_runner = lazy_module("sidecar.tools.shell.runner")
    fetch_url = lazy_module("sidecar.tools.web.fetch_url")
    file_names = lazy_module("sidecar.workspace.names")

MCP_WAIT_S = 3.0
"""How long a turn waits for MCP servers that are still starting; after that it runs without them."""

MAX_MATCHED = 10
"""How many files of a search result become open files."""

MAX_SEEN = 2000
"""How many files are remembered as seen by the model; it must read older ones again before it edits them."""


class EnvironmentOwner(Protocol):
    """The chat, as its tool environment sees it."""

    chat: Chat

    @property
    def config(self) -> EffectiveConfig: ...


class ToolEnvironment:
    def __init__(self, owner: EnvironmentOwner, services: ChatServices) -> None:
        self._owner = owner
        self.services = services
        self._seen: dict[str, str] = {}
        self.indexed_sources: dict[bytes, Source] = {}
        """The sources in the index of this chat's newest outputs, by a hash of label and text."""
        self._hook_runner: hooks_runner.HookRunner | None = None
        self.redirected: dict[str, None] = {}
        """Calls that were redirected once, oldest first: when the model repeats one, it runs."""

    def hook_locations(self) -> list[HookLocation]:
        """The files that may define hooks."""
        return hook_locations(self.services.user_folder, self.settings, self._owner.chat.project_path)

    def compaction_ended(self) -> None:
        """Reset the hook runner: the oldest turns of the chat are no longer sent to the model."""
        if self._hook_runner:
            self._hook_runner.compaction_ended()

    def has_hooks(self) -> bool:
        """Whether any file with hooks exists. Most chats have none and skip all hook code."""
        return any_exist(self.hook_locations())

    @property
    def hook_runner(self) -> hooks_runner.HookRunner:
        """The chat's hook runner, created on first use."""
        if self._hook_runner is None:
            self._hook_runner = hooks_runner.HookRunner(self)
        return self._hook_runner

    @property
    def chat(self) -> Chat:
        return self._owner.chat

    @property
    def config(self) -> EffectiveConfig:
        return self._owner.config

    @property
    def settings(self) -> ProjectSettings:
        return self.services.settings(self._owner.chat.project_path)

    @property
    def files(self) -> OpenFiles:
        """The chat's open files."""
        return OpenFiles.from_state(self._owner.chat.open_files, self.settings.open_file_limits)

    def set_open_files(self, files: OpenFiles) -> NewEvent:
        """Replace the chat's open files. The caller must commit the returned event next."""
        state = files.state()
        self._owner.chat = msgspec.structs.replace(self._owner.chat, open_files=state)
        return NewEvent("files.updated", {"files": state})

    def is_project_trusted(self) -> bool:
        """Whether the files of the project may instruct the model; a chat without a project has none."""
        project = self._owner.chat.project_path
        return project is None or self.services.is_trusted(project)

    def workspace(self) -> Workspace | None:
        """The folders of the chat as they are now; None for a chat without a project."""
        config = self._owner.config
        project = config.project_path
        if not project:
            return None
        extra = config.extra_folders
        # Again at each use: a link may have replaced the folder since the chat was bound to it.
        for field, folder in [("projectPath", project), *(("extraFolders", folder) for folder in extra)]:
            refuse_own_folder(field, folder, self.services.own_folders)
        programs.note_writable([project, *extra])
        own_settings = [self.services.user_folder, *filter(None, [self.services.settings_file])]
        return Workspace(
            project,
            extra,
            self.services.store.own_files,
            own_settings=own_settings,
        )

    def require_workspace(self) -> Workspace:
        workspace = self.workspace()
        if workspace is None:
            raise Refused(
                "precondition_failed",
                "`projectPath`: this chat has no project",
                params={"field": "projectPath"},
                hint="Open the chat with a projectPath",
            )
        return workspace

    async def read_rules(self, granted: str | None = None) -> file_rules.ReadRules:
        """The rules that are in force now for which files the model may see."""
        workspace = self.workspace()
        names = file_names.RealNames(workspace) if workspace else None
        return file_rules.ReadRules(await self._permission_rules(), self.config.mode, names, granted)

    async def hidden_files(self) -> hidden_files.HiddenFiles:
        """The files that read rules withhold now, for the sandbox of a command."""
        workspace = self.workspace()
        if workspace is None:
            return hidden_files.HiddenFiles()
        rules = await self._permission_rules()
        return await anyio.to_thread.run_sync(hidden_files.find_hidden, rules, workspace)

    async def _permission_rules(self) -> list[Rule]:
        chat = self.chat
        rows = await self.services.store.permission_rules.of(chat.id, chat.project_path)
        return [*self.settings.rules, *map(permissions.rule_of, rows)]

    def view_events(self, item: Item, result: CallResult) -> list[NewEvent]:
        """Return the events for files that a finished call has opened."""
        outcome = result.outcome
        if outcome.failed or outcome.denied or not (outcome.seen or outcome.matched):
            return []
        workspace = self.workspace()
        if workspace is None:
            return []
        files, by, at = self.files, item.name or "tool", now()
        # Last come the files that were read: the most recent ones stay open when there are too many.
        for path in [*reversed(outcome.matched[:MAX_MATCHED]), *outcome.seen]:
            try:
                real = workspace.real(path)
            except Failure:
                continue  # deleted since; the call only read it
            files = files.touched(real, by, at, seen=outcome.seen.get(path))
        for path, hash in outcome.seen.items():
            self.remember(workspace, path, hash)
        return [self.set_open_files(files)]

    def remember(self, workspace: Workspace, path: str, hash: str) -> None:
        """Record that the model has seen the file with this hash."""
        self._seen[absolute_path(workspace, path)] = hash
        while len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]

    def seen(self, workspace: Workspace, path: str) -> str | None:
        known = self._seen.get(absolute_path(workspace, path))
        if known is None:
            try:
                known = self.files.seen_of(workspace.real(path))
            except Failure:
                return None
        return known

    async def toolbox(self, *, own_only: bool = False) -> Toolbox:
        """The tools of a turn that starts now; with `own_only` without those of the app and of MCP servers."""
        chosen, settings = self._owner.config.tools or ToolChoice(), self.settings
        tools = await self._built_in_tools() if own_only else await self.tools(MCP_WAIT_S)
        for allow in (settings.values.tools.allow, chosen.allow):
            tools = [tool for tool in tools if not allow or tool.spec.name in allow]
        return Toolbox(tools, [*settings.values.tools.deny, *(chosen.deny or ())])

    async def tools(self, wait_s: float) -> list[Tool]:
        """All tools: built-in ones in a project, the app's, and those of MCP servers that answer in time."""
        tools = await self._built_in_tools()
        tools += [_app_tool(offered) for offered in self.services.app.tools]
        if self._owner.chat.project_path and self.services.app.can("terminals"):
            tools.append(run_in_terminal.RunInTerminal())
        servers = await self.mcp_servers()
        if servers:
            tools += await self.services.servers().tools(servers, wait_s)
        if tools and self.settings.values.index.enabled and not self._owner.chat.project_path:
            tools += builtin.output_tools()
        return tools

    async def _built_in_tools(self) -> list[Tool]:
        project = self._owner.chat.project_path
        if not project:
            return []
        return await own_tools(self.services, self.settings, await self._bounds(project))

    async def _bounds(self, project: str) -> Bounds:
        extra = self._owner.config.extra_folders
        return await sandbox_bounds.bounds_of(self.services, self.settings, extra, self._outside(project))

    async def runner(self) -> Runner:
        """Runs programs of an engine, as `run_command` runs those of the model."""
        bounds = await self._bounds(self.require_workspace().root)
        return shell_runner.Runner(self.settings.values.sandbox, os.environ, bounds)

    def run_outside(self) -> list[str]:
        """The files and folders of the project that run, or in which programs are searched, outside of the sandbox.
        Blocking.
        """
        project = self._owner.chat.project_path
        if not project:
            return []
        outside = self._outside(project)
        return [*sandbox_bounds.run_outside(outside), *programs.path_folders(outside.folders)]

    def _outside(self, project: str) -> sandbox_bounds.Outside:
        values, config = self.settings.values, self._owner.config
        return sandbox_bounds.Outside(
            folders=[project, *config.extra_folders],
            named=[*values.hooks.paths, *values.rules.paths],
            hooks=self.hook_locations(),
            servers=[*values.mcp_servers(), *(config.mcp_servers or ())],
        )

    async def mcp_servers(self) -> list[mcp.ServerConfig]:
        """The MCP servers of the settings and of the chat's configuration; the chat's entry wins.

        A server of the chat with a missing secret is omitted; `unset_secrets` names it.
        """
        named = {raw["name"]: raw for raw in self.settings.values.mcp_servers()}
        own = self._owner.config.mcp_servers
        if own:
            kept = await self.services.store.mcp_secrets(self._owner.chat.id)
            for raw in own:
                named.pop(raw["name"], None)
                # A server without its secret would start, fail, and be blamed for it.
                if not mcp_secrets.missing_keys(raw, kept):
                    named[raw["name"]] = mcp_secrets.join(raw, kept)
        if not named:
            return []
        project = self._owner.chat.project_path
        if project:
            named = {name: _in_folder(raw, project) for name, raw in named.items()}
        return mcp.parse_servers(list(named.values()), "mcpServers")

    async def unset_secrets(self) -> dict[str, list[str]]:
        """The chat's servers that cannot start, each with the secrets for which no value is stored."""
        own = self._owner.config.mcp_servers
        if not own:
            return {}
        kept = await self.services.store.mcp_secrets(self._owner.chat.id)
        missing = {str(raw["name"]): mcp_secrets.missing_keys(raw, kept) for raw in own}
        return {
            name: [f"{part}.{key}" if key else part for _, part, key in keys]
            for name, keys in missing.items()
            if keys
        }

    async def warm(self) -> None:
        """Start the chat's MCP servers, because a client has opened the chat."""
        servers = await self.mcp_servers()
        if servers:
            self.services.servers().want(servers)

    def turn_ended(self, turn: RunningTurn) -> None:
        """Close the turn's unanswered requests, so that a late answer gets the recorded outcome."""
        for id, outcome in turn.unanswered.items():
            self.services.requests.close(id, outcome)

    async def recover_after_crash(self, turn: Turn | None) -> list[NewEvent]:
        """Return events for what an unfinished turn did and did not record, and end the processes that it left."""
        open_items = (
            [item for item in turn.items if item.type == "tool" and item.status == "running"] if turn else []
        )
        if not open_items:
            return []
        keys = [call_key(self.chat, item) for item in open_items]
        # First: what still runs could change the files that are compared below.
        await anyio.to_thread.run_sync(process_tree.reap_orphans, keys)
        await anyio.to_thread.run_sync(scratch.remove_all, keys)
        try:
            workspace = self.workspace()
        except Failure:
            return []  # the project is gone, so there are no files to compare
        known = [entry.patch for entry in await self.services.store.patches.all(self.chat.id)]
        return await edits.recover_patches(workspace, open_items, known)


async def own_tools(
    services: ChatServices, settings: ProjectSettings, bounds: Bounds | None = None
) -> list[Tool]:
    """The built-in tools; `bounds` are those of commands in the sandbox."""
    # In a thread: the first call looks for the installed languages, which blocks.
    if not runtimes.is_detected():
        await anyio.to_thread.run_sync(runtimes.installed_runtimes)
    index = settings.values.index
    tools = builtin.builtin_tools(
        settings.values.sandbox, bounds, indexed=index.enabled, inline=index.inline_max
    )
    if settings.values.fetch.enabled:
        tools.append(
            fetch_url.FetchUrl(services.web, settings.values.fetch, settings.values.index.inline_max)
        )
    return tools


def _app_tool(offered: OfferedTool) -> Tool:
    spec = ToolSpec(offered.name, offered.description, offered.input_schema)
    return app_tool.AppTool(spec, offered.kind, offered.timeout_ms)


def _in_folder(server: JsonObject, project: str) -> JsonObject:
    """Run a stdio server in the project's folder, unless it has a `cwd`."""
    return server if "url" in server or "cwd" in server else {**server, "cwd": project}


def call_key(chat: Chat, item: Item) -> str:
    return f"{chat.key.session_id}.{chat.epoch}.{item.id}"


def absolute_path(workspace: Workspace, path: str) -> str:
    """The absolute path, equal for every spelling that the model may use."""
    place = workspace.resolve(path)
    return os.path.join(place.root, *place.parts)
