"""Runs a turn: chooses the provider, builds the request and calls the engine. Connects a chat to both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import msgspec

from ...engines.base import Engine, EngineChat, ModelCalls, TurnLimits, TurnRequest
from ...engines.registry import ChatEngine, EngineEntry, EngineRegistry
from ...model.chats import Chat, ContextSwitches, EffectiveConfig, Prompt, PromptOverrides
from ...model.content import Block, EndReason, Turn
from ...model.failures import Failure, ProviderFailed, invalid_param
from ...model.refusals import is_provider_refusal
from ...providers.base import Provider, ToolCall
from ...providers.registry import AUTO, ProviderRegistry
from ...store.store import Store
from ...system.lazy import lazy_module
from ...tools.toolbox import CallResult, Toolbox
from ..journal.running_turn import RunningTurn
from ..request import plain
from ..request.media import Showing
from ..request.resume import ResumeSnapshots
from ..tool_calls.environment import ToolEnvironment
from . import titles

if TYPE_CHECKING:
    from ...context.tokens import families
    from ..request import build, candidates, engine_background, next_step
    from ..services import direct_calls
    from ..tool_calls import outside_changes, run_tool_call
    from . import hook_turns, preload
else:
    engine_background = lazy_module("sidecar.chat.request.engine_background")
    build = lazy_module("sidecar.chat.request.build")
    candidates = lazy_module("sidecar.chat.request.candidates")
    next_step = lazy_module("sidecar.chat.request.next_step")
    hook_turns = lazy_module("sidecar.chat.sessions.hook_turns")
    preload = lazy_module("sidecar.chat.sessions.preload")
    direct_calls = lazy_module("sidecar.chat.services.direct_calls")
    outside_changes = lazy_module("sidecar.chat.tool_calls.outside_changes")
    run_tool_call = lazy_module("sidecar.chat.tool_calls.run_tool_call")
    families = lazy_module("sidecar.context.tokens.families")

Compact = Callable[["build.BuiltRequest", Provider, str], Awaitable[bool]]
"""Compacts the chat before a turn that would fill its window; False when there is nothing to do."""


class TurnRunner:
    """Runs the turns of one chat; remembers for which models it has reported an unknown context window."""

    def __init__(
        self,
        providers: ProviderRegistry,
        engines: EngineRegistry,
        store: Store,
        environment: ToolEnvironment,
        resume_snapshots: ResumeSnapshots,
    ) -> None:
        self._providers = providers
        self._engines = engines
        self._engine = ChatEngine()
        self._resume_snapshots = resume_snapshots
        self._store = store
        self._environment = environment
        self._announced_models: set[str] = set()
        self.showing = Showing(store)
        self.last_request: build.BuiltRequest | None = None
        """The newest request, by which a compaction is planned; None after a compaction."""
        self._outside: outside_changes.OutsideChanges | None = None
        self._noted: anyio.Event | None = None
        """Set when the session of the last turn is recorded; the next one reads it."""
        self._given: dict[str, str] = {}
        """By session of an engine, the instructions that it was given."""
        self._compactions = 0
        self._uncalibrated: build.BuiltRequest | None = None

    def engine(self, name: str) -> EngineEntry:
        """The engine of a turn; refuses a name that is not in the registry."""
        return self._engines.find(name)

    async def close_engine(self) -> None:
        """Close the chat's engine, because the chat is closed or purged, or the process exits."""
        self._outside = None
        await self._engine.close()

    def check_model(self, overrides: PromptOverrides) -> None:
        """Refuse a model that a prompt chooses and that cannot exist."""
        chosen = overrides.model
        if chosen is not None and (problem := self._providers.name_problem(chosen)):
            raise invalid_param("overrides.model", problem)

    async def model(self, chosen: str) -> str:
        """The model of a turn. When there is none, the turn itself fails with a remedy."""
        if chosen != AUTO:
            return chosen
        try:
            return await self._providers.default()
        except ProviderFailed:
            return AUTO

    async def warm(self, engine_name: str, chosen: str) -> None:
        """Prepare the model and the modules for a first prompt."""
        try:
            engine = self.engine(engine_name)
            if not engine.capabilities.calls_provider:
                return
            provider, name = self._providers.resolve(await self.model(chosen))
        except Failure:
            return
        await provider.warm(name)
        if provider.reads_history:
            chat = self._environment.chat
            await preload.preload_modules(
                engine.create,
                self._environment.services.answering_turns,
                chat.project_path is not None,
                chat.turns > 0,
            )

    async def run(
        self,
        engine: EngineEntry,
        chat: Chat,
        config: EffectiveConfig,
        turn: RunningTurn,
        prompt: Prompt,
        model: str,
        continued: Turn | None,
        compact: Compact,
    ) -> EndReason:
        """Answer the prompt, or continue an unfinished turn."""
        resolved = await self.resolve(model) if engine.capabilities.calls_provider else None
        if resolved:
            provider, name = resolved
            turn.prices = provider.model_entry(name).prices
        direct = engine.capabilities.runs_client_calls
        # Before the tools and the request: a hook may refuse the prompt, and what it adds is part of it.
        added = [] if direct else await self._run_start_hooks(turn, prompt, continued)
        tools = await self._environment.toolbox(own_only=direct)
        settings = self._environment.settings
        request = TurnRequest(
            prompt=[*prompt.content, *added],
            model=model,
            effort=prompt.overrides.effort or config.effort,
            limits=TurnLimits(
                config.max_steps,
                settings.values.session.max_seconds or None,
                settings.values.session.max_tokens or None,
            ),
            tools=tools,
            run_tool=partial(self._run_client_call if direct else self._run_tool, turn, tools),
            secret=chat.epoch,
            calls=None,
        )
        if resolved:
            if provider.reads_history or config.window:
                spec = await self.spec(provider, name, config, prompt, turn.id, tools, added=added)
                calls = await self._assembled_calls(chat, turn, spec, compact)
            else:
                requests = plain.PlainRequests(turn, provider, name, self.showing)
                calls = await requests.calls(chat, prompt, continued, request.effort)
            request = msgspec.structs.replace(request, calls=calls)
        with self._mark_answering(turn.id):
            opened = await self._engine.use(
                engine, EngineChat(chat.key.session_id, chat.epoch, chat.project_path)
            )
            if engine.capabilities.keeps_session:
                background = engine_background.EngineBackground(
                    self._environment, turn, self.showing, self._resume_snapshots, self._given
                )
                if self._noted is not None:
                    await self._noted.wait()
                host = await background.prepare(engine, opened, chat, config, prompt, added)
                request = msgspec.structs.replace(request, host=host, prompt=host.prompt)
                return await self._run_recorded(engine, background, opened, request, turn)
            return await self._run(opened, request, turn)

    async def _run_recorded(
        self,
        engine: EngineEntry,
        background: engine_background.EngineBackground,
        opened: Engine,
        request: TurnRequest,
        turn: RunningTurn,
    ) -> EndReason:
        """Run an engine that writes files itself; what it changes is recorded, and that its session has the turn."""
        self._outside = self._outside or outside_changes.OutsideChanges(self._environment)
        await self._outside.note_before()
        try:
            reason = await self._run(opened, request, turn)
        except anyio.get_cancelled_exc_class():
            await background.note_answered(engine)
            raise
        finally:
            await self._outside.record(turn, turn.engine)
        self._noted = background.note_answered_soon(engine)
        return reason

    async def _run_tool(self, turn: RunningTurn, tools: Toolbox, call: ToolCall) -> CallResult:
        return await run_tool_call.run_tool_call(self._environment, turn, tools, call)

    async def _run_client_call(self, turn: RunningTurn, tools: Toolbox, call: ToolCall) -> CallResult:
        """Run a call that a client of this process waits for; others were planted or outlived their client."""
        direct = self._environment.services.direct_calls.get(call.id)
        if direct is None or direct.call != call:
            return direct_calls.ORPHANED
        return await direct.run(
            lambda: run_tool_call.run_tool_call(self._environment, turn, tools, call, direct)
        )

    async def _run(self, opened: Engine, request: TurnRequest, turn: RunningTurn) -> EndReason:
        try:
            return await opened.run(request, turn)
        except ProviderFailed as failure:
            if is_provider_refusal(failure.details()):
                self.last_request = (
                    None  # what filled the window is not history, so compacting would not help
                )
            raise

    async def _run_start_hooks(
        self, turn: RunningTurn, prompt: Prompt, continued: Turn | None
    ) -> list[Block]:
        """Run the hooks for the prompt and return what they add; raises when they refuse it."""
        if not self._environment.has_hooks():
            return []
        hooks = hook_turns.TurnHooks(self._environment, turn)
        turn.on_stop = hooks.before_stop
        return await hooks.run_start_hooks(prompt, continued)

    @contextmanager
    def _mark_answering(self, turn: str) -> Iterator[None]:
        """Mark the turn as answering, so that nothing that blocks the event loop starts for another chat."""
        self._environment.services.answering_turns.add(turn)
        try:
            yield
        finally:
            self._environment.services.answering_turns.discard(turn)

    async def resolve(self, model: str) -> tuple[Provider, str]:
        return self._providers.resolve(await self._providers.default() if model == AUTO else model)

    async def spec(
        self,
        provider: Provider,
        name: str,
        config: EffectiveConfig,
        prompt: Prompt,
        turn_id: str,
        tools: Toolbox,
        budget: int | None = None,
        *,
        added: Sequence[Block] = (),
        preview: bool = False,
    ) -> candidates.RequestSpec:
        """The specification of a request, before anything is read for it."""
        reads_history = provider.reads_history
        entry = provider.model_entry(name)
        content, left_out = await self.showing.blocks(prompt.content, entry, turn_id)
        used = await self._store.tool_call_counts(self._environment.chat.id) if reads_history else {}
        return candidates.RequestSpec(
            provider=provider,
            showing=self.showing,
            model=name,
            config=config,
            effort=prompt.overrides.effort or config.effort,
            turn_id=turn_id,
            prompt=content,
            left_out=left_out,
            added=list(added),
            tools=tools.specs if reads_history else [],
            tools_by_need=tools.names_by_need(used) if reads_history else [],
            window_was_asked=f"{entry.provider}:{name}" in self._announced_models,
            context=prompt.overrides.context or ContextSwitches(),
            budget=budget,
            preview=preview,
        )

    async def title(self, turn: Turn) -> str | None:
        """A title by the turn's model for a chat that starts with it."""
        provider, name = self._providers.resolve(turn.model)
        return await titles.ask_model(provider, name, titles.conversation_text(turn))

    async def _assembled_calls(
        self, chat: Chat, turn: RunningTurn, spec: candidates.RequestSpec, compact: Compact
    ) -> ModelCalls:
        """Build the turn's first request, and record its manifest and an unknown context window."""
        known = self._compactions
        built = await build.build_request(self._store, self._environment, chat, spec, self._resume_snapshots)
        # Built a second time only when the first request showed that the window is nearly full.
        if await compact(built, spec.provider, spec.model):
            built = await build.build_request(
                self._store, self._environment, chat, spec, self._resume_snapshots
            )
        self._uncalibrated = built
        # A compaction may have ended while this was built: then its figures are about turns that are gone.
        self.last_request = built if known == self._compactions else None
        used = built.manifest.used
        turn.window = {"used": used, "budget": built.budget.total}
        turn.on_usage = lambda reported: self._calibrate(spec.name, built, reported)
        await turn.note_request(msgspec.structs.replace(built.manifest, kept=built.kept))
        if built.window_is_unknown and spec.name not in self._announced_models:
            self._announced_models.add(spec.name)
            params = {"model": spec.name, "assumed": built.budget.window}
            await turn.note("notice", {"code": "window_unknown", "params": params})
        stepping = next_step.StepFitter(
            turn, built, spec.showing, spec.entry, self._environment.is_project_trusted
        )
        await stepping.tell_left_out(built.left_out)
        return ModelCalls(spec.provider, built.request, stepping.fit_next_step, stepping.reduce)

    def compaction_ended(self) -> None:
        """Forget the measurements of requests before the compaction."""
        self._compactions += 1
        self.last_request = None

    async def _calibrate(self, model: str, built: build.BuiltRequest, reported: int) -> None:
        """Calibrate the estimate with the provider's count; only the first request of a turn was measured this way."""
        meter = built.meter
        # Rough counts are upper limits; comparing them with the provider's would teach a wrong factor.
        if meter.rough or meter.family.exact or self._uncalibrated is not built:
            return
        self._uncalibrated = None
        factor = await self._store.compactions.calibration(model)
        # Divided by the factor that was applied already: what is learned is relative to the uncalibrated
        # family.
        learned = families.Calibration(factor).observed(int(built.manifest.used / factor), reported)
        if learned.factor != factor:
            await self._store.compactions.put_calibration(model, learned.factor)
