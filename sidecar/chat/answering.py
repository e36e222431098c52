"""Who answers a prompt, and with what in view: joins a chat to the providers and the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..engines import native
from ..engines.native import Limits, Refit, TurnRequest
from ..model.chats import Chat, Prompt
from ..model.content import Block, EndReason, Turn
from ..model.failures import Failure, ProviderFailed
from ..providers.base import ModelRequest, Provider
from ..providers.registry import AUTO, Registry
from ..store.store import Store
from ..tools.toolbox import Toolbox
from . import titles
from .continuity import Continuity
from .desk import Desk
from .messages import messages_of
from .running import RunningTurn

if TYPE_CHECKING:
    from .asking import Question
    from .materials import Asked

Compact = Callable[["Question", Provider, str], Awaitable[bool]]
"""Makes the chat smaller before a turn that would fill its window; False when there is nothing to do."""


class Answering:
    """One chat's; remembers of which models it has said that nobody knows their window."""

    def __init__(self, providers: Registry, store: Store, desk: Desk, continuity: Continuity) -> None:
        self._providers = providers
        self._continuity = continuity
        self._store = store
        self._desk = desk
        self._told: set[str] = set()
        self.last: Question | None = None
        """The newest request's measure, by which a compaction is planned; None when one has come since."""
        self._compactions = 0
        self._unlearned: Question | None = None

    async def model(self, chosen: str) -> str:
        """The model of a turn; when there is none at all, the turn itself tells what to do."""
        if chosen != AUTO:
            return chosen
        try:
            return await self._providers.default()
        except ProviderFailed:
            return AUTO

    async def warm(self, chosen: str) -> None:
        """Make the model ready for a first prompt, and what asks it."""
        try:
            provider, name = self._providers.resolve(await self.model(chosen))
        except Failure:
            return
        await provider.warm(name)
        if provider.reads_history:
            from . import warming

            chat = self._desk.chat
            await warming.load(self._desk.workshop.answered, chat.project_path is not None, chat.turns > 0)

    async def run(
        self,
        chat: Chat,
        config: dict[str, Any],
        turn: RunningTurn,
        prompt: Prompt,
        model: str,
        goes_on: Turn | None,
        compact: Compact,
    ) -> EndReason:
        """Answer the prompt, or go on with an unfinished turn."""
        provider, name = await self.resolve(model)
        turn.prices = provider.known(name).prices
        added = await self._ask_hooks(turn, prompt, goes_on)
        tools = await self._desk.toolbox()
        refit: Refit | None = None
        if provider.reads_history or config.get("window"):
            asked = await self.asked(provider, name, config, prompt, turn.id, tools, added=added)
            first, refit = await self._with_history(chat, turn, asked, compact)
        else:
            effort = prompt.overrides.get("effort") or config.get("effort")
            messages = messages_of([goes_on]) if goes_on else messages_of([], prompt.content)
            first = ModelRequest(name, messages, effort)
        settings = self._desk.settings
        limits = Limits(config["maxSteps"], settings.max_seconds, settings.max_tokens)
        with self._noted(turn.id):
            return await native.run(TurnRequest(provider, first, limits, tools, refit), turn)

    async def _ask_hooks(self, turn: RunningTurn, prompt: Prompt, goes_on: Turn | None) -> list[Block]:
        """What hooks add to the prompt; raises when they refuse it."""
        if not self._desk.has_hooks():
            return []
        from .hook_turns import TurnHooks

        hooks = TurnHooks(self._desk, turn)
        turn.on_stop = hooks.stopping
        return await hooks.begin(prompt, goes_on)

    @contextmanager
    def _noted(self, turn: str) -> Iterator[None]:
        """While the model answers, nothing that holds up the whole process is begun for another chat."""
        self._desk.workshop.answered.add(turn)
        try:
            yield
        finally:
            self._desk.workshop.answered.discard(turn)

    async def resolve(self, model: str) -> tuple[Provider, str]:
        return self._providers.resolve(await self._providers.default() if model == AUTO else model)

    async def asked(
        self,
        provider: Provider,
        name: str,
        config: dict[str, Any],
        prompt: Prompt,
        turn_id: str,
        tools: Toolbox,
        budget: int | None = None,
        *,
        added: Sequence[Block] = (),
        preview: bool = False,
    ) -> Asked:
        """What a prompt asks, before anything is read for it."""
        from .materials import Asked

        told = provider.reads_history
        used = await self._store.tool_uses(self._desk.chat.id) if told else {}
        return Asked(
            provider=provider,
            model=name,
            config=config,
            effort=prompt.overrides.get("effort") or config.get("effort"),
            turn_id=turn_id,
            prompt=prompt.content,
            added=list(added),
            tools=tools.specs if told else [],
            needed_tools=tools.by_need(used) if told else [],
            window_is_asked=f"{provider.known(name).provider}:{name}" in self._told,
            context=prompt.overrides.get("context") or {},
            budget=budget,
            preview=preview,
        )

    async def title(self, turn: Turn) -> str | None:
        """What the turn's model calls a chat that begins with it."""
        provider, name = self._providers.resolve(turn.model)
        return await titles.ask_model(provider, name, titles.said_in(turn))

    async def _with_history(
        self, chat: Chat, turn: RunningTurn, asked: Asked, compact: Compact
    ) -> tuple[ModelRequest, Refit]:
        """The turn's first request; what it holds, and what nobody knows of its model, is told."""
        from . import asking
        from .stepping import Stepping

        known = self._compactions
        question = await asking.question(self._store, self._desk, chat, asked, self._continuity)
        if await compact(question, asked.provider, asked.model):
            question = await asking.question(self._store, self._desk, chat, asked, self._continuity)
        self._unlearned = question
        self.last = question if known == self._compactions else None
        used = question.manifest["used"]
        turn.window = {"used": used, "budget": question.budget.total}
        turn.on_usage = lambda reported: self._calibrate(asked.name, question, reported)
        await turn.note(
            "context.assembled", {**asking.without_text(question.manifest), "kept": question.kept}
        )
        if question.window_is_missed and asked.name not in self._told:
            self._told.add(asked.name)
            params = {"model": asked.name, "assumed": question.manifest["window"]}
            await turn.note("notice", {"code": "window_unknown", "params": params})
        return question.request, Stepping(turn, question).refit

    def compacted(self) -> None:
        """The chat was compacted: what was measured before says nothing any more."""
        self._compactions += 1
        self.last = None

    async def _calibrate(self, model: str, question: Question, reported: int) -> None:
        """Learn from what the provider counted; only the first request of a turn was measured so."""
        from ..context.tokens.families import Calibration

        measure = question.measure
        if measure.rough or measure.family.exact or self._unlearned is not question:
            return
        self._unlearned = None
        factor = await self._store.calibration(model)
        learned = Calibration(factor).observed(int(question.manifest["used"] / factor), reported)
        if learned.factor != factor:
            await self._store.put_calibration(model, learned.factor)
