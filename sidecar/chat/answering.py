"""Who answers a prompt, and with what in view: joins a chat to the providers and the engine."""

from __future__ import annotations

from typing import Any

from ..engines import native
from ..engines.native import TurnRequest
from ..model.chats import Chat, Prompt
from ..model.content import EndReason, Turn
from ..model.failures import Failure, ProviderFailed
from ..providers.base import ModelRequest
from ..providers.registry import AUTO, Registry
from ..store.store import Store
from ..tools.toolbox import Toolbox
from ..workspace.paths import Workspace
from . import asking, titles
from .asking import Asked
from .messages import messages_of
from .running import RunningTurn


class Answering:
    """One chat's; remembers of which models it has said that nobody knows their window."""

    def __init__(self, providers: Registry, store: Store) -> None:
        self._providers = providers
        self._store = store
        self._told: set[str] = set()

    async def model(self, chosen: str) -> str:
        """The model of a turn; when there is none at all, the turn itself tells what to do."""
        if chosen != AUTO:
            return chosen
        try:
            return await self._providers.default()
        except ProviderFailed:
            return AUTO

    async def warm(self, chosen: str) -> None:
        """Make the model ready for a first prompt."""
        try:
            provider, name = self._providers.resolve(await self.model(chosen))
        except Failure:
            return
        await provider.warm(name)

    async def run(
        self,
        chat: Chat,
        config: dict[str, Any],
        turn: RunningTurn,
        prompt: Prompt,
        model: str,
        goes_on: Turn | None,
    ) -> EndReason:
        """Answer the prompt, or go on with an unfinished turn."""
        provider, name = self._providers.resolve(await self._providers.default() if model == AUTO else model)
        effort = prompt.overrides.get("effort") or config.get("effort")
        tools = self._toolbox(config)
        if provider.reads_history:
            told = f"{provider.known(name).provider}:{name}" in self._told
            asked = Asked(provider, name, config, effort, turn.id, prompt.content, tools.specs, told)
            first = await self._with_history(chat, turn, asked)
        else:
            messages = messages_of([goes_on]) if goes_on else messages_of([], prompt.content)
            first = ModelRequest(name, messages, effort)
        return await native.run(TurnRequest(provider, first, config["maxSteps"], tools), turn)

    def _toolbox(self, config: dict[str, Any]) -> Toolbox:
        """The chat's tools: those of its project, without those that its configuration leaves out."""
        project = config.get("projectPath")
        chosen = config.get("tools") or {}
        workspace = (
            Workspace(project, config.get("extraFolders") or (), self._store.own_files) if project else None
        )
        return Toolbox(workspace, chosen.get("allow") or None, chosen.get("deny") or [])

    async def title(self, turn: Turn) -> str | None:
        """What the turn's model calls a chat that begins with it."""
        provider, name = self._providers.resolve(turn.model)
        return await titles.ask_model(provider, name, titles.said_in(turn))

    async def _with_history(self, chat: Chat, turn: RunningTurn, asked: Asked) -> ModelRequest:
        """The turn's first request; what it holds, and what nobody knows of its model, is told."""
        question = await asking.question(self._store, chat, asked)
        await turn.note("context.assembled", question.manifest)
        model = question.manifest["model"]
        if question.window_is_missed and model not in self._told:
            self._told.add(model)
            params = {"model": model, "assumed": question.manifest["window"]}
            await turn.note("notice", {"code": "window_unknown", "params": params})
        return question.request
