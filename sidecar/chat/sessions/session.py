"""One chat's session in this process: prompts, their queue, and the turns that answer them.

Every change runs under the chat's lock, in the order of the requests, and is committed before it takes effect. Does
not know how a request to the model is built (`turn_runner`) or how events are stored (`journal_writer`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
import msgspec
from sidecar_protocol.limits import MAX_QUEUED_PROMPTS

from ...engines.registry import DIRECT_ENGINE, EngineEntry
from ...model.chats import Chat, OwnConfig, Prompt, PromptOverrides
from ...model.content import STATUS_OF_REASON, EndReason, Turn
from ...model.events import NewEvent, StoredEvent
from ...model.failures import Failure, Refused, StorageFailed, invalid_param, out_of_memory
from ...model.refusals import has_refused_prompt
from ...store.tables.leases import LeaseLost, UnclosedChat
from ...store.tables.turns import unknown_turn
from ...system.lazy import lazy_module
from ..compaction import auto_compaction
from ..journal import event_factory
from ..journal.running_turn import RunningTurn, failure_data, new_id, turn_ended_event
from ..services.services import ChatServices
from . import config, crash_closure, titles
from .arrivals import CancelResult, IncomingPrompt, PromptReceipt, QueueFate
from .handed import Handed, HandedCancel, HandedPrompt
from .prompt_queue import RETRY_STORAGE_S, QueuedChat
from .server_secrets import take_secrets

if TYPE_CHECKING:
    from ..request import named_blocks
    from . import hook_turns
else:
    hook_turns = lazy_module("sidecar.chat.sessions.hook_turns")
    named_blocks = lazy_module("sidecar.chat.request.named_blocks")

logger = logging.getLogger(__name__)


class Session(QueuedChat):
    """The operations on one chat.

    `after_turn` runs in the background after each turn of a chat with a project.
    """

    def __init__(
        self,
        services: ChatServices,
        chat: Chat,
        queue: list[Prompt],
        after_turn: Callable[[Session], Awaitable[None]],
    ) -> None:
        super().__init__(services, chat, queue)
        self._after_turn = after_turn

    async def send(self, prompt: IncomingPrompt) -> PromptReceipt:
        """Start the prompt's turn, queue it, or steer the running turn with it."""
        steers = prompt.delivery == "steer" and self.turn is not None and self.turn.takes_steers
        if steers and self.environment.has_hooks():
            prompt = await hook_turns.on_steer(self, prompt)
        return await self._run_or_hand_over(
            lambda: self._send(prompt), Handed(HandedPrompt(prompt), PromptReceipt)
        )

    async def send_call(self, prompt: IncomingPrompt) -> PromptReceipt | None:
        """Start a turn for a tool call of the client, or add the call to such a turn. None while another turn runs."""
        return await self._run_change(lambda: self._send_call(prompt))

    async def retry(
        self, prompt_id: str, turn_id: str | None, in_place: bool, overrides: PromptOverrides
    ) -> PromptReceipt:
        """Answer a turn's prompt again, or continue an unfinished turn."""
        return await self._run_change(lambda: self._retry(prompt_id, turn_id, in_place, overrides))

    async def cancel(self, turn_id: str | None, queue: QueueFate) -> CancelResult:
        """End the running turn; returns once its end is committed."""
        running: list[RunningTurn] = []

        async def change() -> CancelResult:
            turn = self.turn
            if turn is None or (turn_id is not None and turn_id != turn.id):
                return await self._cancel_without_turn(turn_id)
            if queue == "clear":
                await self._clear_queue()
            elif queue == "pause" and not turn.ending:
                await self._pause_queue("cancelled")
            running.append(turn)
            return CancelResult("already_ended" if turn.ending else "cancelled")

        handed: Handed[CancelResult] = Handed(HandedCancel(turn_id, queue), CancelResult)
        found = await self._run_or_hand_over(change, handed)
        if not running:
            return found
        # Not under the lock: requests that come meanwhile need not wait for the end.
        turn = running[-1]
        turn.cancel("cancelled")
        await turn.wait_ended()
        return CancelResult(found.outcome, turn.end_seq)

    async def rename(self, title: str | None, by: str = "user") -> int:
        """Set the title, or go back to one from the chat's first words. One that is not the user's stays away from a
        chat that the user has named.
        """

        async def change() -> int:
            # Under the lock: the user may have named it while the model thought about a title.
            if by != "user" and self.chat.title_by == "user":
                return self.recorder.last_seq
            chosen = (
                title if title is not None else await titles.first_words_of_chat(self._store, self.chat.id)
            )
            namer = by if title is not None else "sidecar"
            stored = await self._record(NewEvent("chat.renamed", {"title": chosen, "by": namer}))
            self.chat = msgspec.structs.replace(self.chat, title=chosen, title_by=namer)
            await self._release_if_idle()
            return stored[-1].seq

        return await self._run_change(change)

    async def configure(self, changes: OwnConfig, project_path: str | None = None) -> int:
        """Set or clear keys of the chat's own configuration, or bind it to another project."""

        async def change() -> int:
            changes_, secrets = await take_secrets(self._store, self.chat.id, changes)
            project = changes_.pop("projectPath", None) or project_path or self.chat.project_path
            stored_config = config.merged(self.chat.config, changes_)
            same = stored_config == self.chat.config and project == self.chat.project_path
            if same and secrets is None:
                return self.recorder.last_seq
            in_force = config.effective_config(self._services.defaults(project), stored_config, project)
            data = {"config": in_force, "stored": stored_config, "projectPath": project}
            stored = await self._record(NewEvent("config.updated", data, secrets=secrets))
            self.chat = msgspec.structs.replace(self.chat, config=stored_config, project_path=project)
            await self._release_if_idle()
            self.run_in_background(self._warm_environment)
            return stored[-1].seq

        return await self._run_change(change)

    async def interrupt(self) -> None:
        """End the turn at shutdown, start no other, pause the queue, and close the engine."""
        try:
            await self._interrupt()
        finally:
            await self.turn_runner.close_engine()

    async def _interrupt(self) -> None:
        self.leaving = True
        async with self.lock:  # a request that was about to start a turn has done so by now
            turn = self.turn
            if turn or self.holds_lease:
                await self._pause_queue("restart")
        if turn:
            turn.cancel("interrupted")
            await turn.done.wait()
        await self.end_session("other")
        if self.compacting:
            pending = (await self._store.chats.snapshot(self.chat.id, 0, 0)).pending
            await self._record(*[crash_closure.end_event(asked) for asked in pending])
        await self.resume_snapshots.take_final_snapshot("exit")
        await self.recorder.wait_flushed()

    def rest(self) -> None:
        """Take a final snapshot in the background, because no client has the chat open any more."""
        self.run_in_background(self.resume_snapshots.take_final_snapshot, "close")

    def lose_lease(self) -> None:
        """End the turn, because another process holds the lease; the commit of its end detects that and yields."""
        if self.turn:
            self.turn.cancel("interrupted")
        else:
            self.recorder.generation = None

    async def end_for_deletion(self) -> None:
        """Stop everything, because the chat is about to be purged."""
        await self.end_session("clear")
        self.queue = []
        if self.turn:
            self.turn.cancel("cancelled")
            await self.turn.wait_ended()
        await self.turn_runner.close_engine()
        await self.recorder.wait_flushed()

    async def _send(self, prompt: IncomingPrompt) -> PromptReceipt:
        known = await self._store.turns.prompt(self.chat.id, prompt.id)
        if known:
            return PromptReceipt("duplicate", known.turn_id or None, known.seq)
        if prompt.overrides.context:
            await named_blocks.check_block_names(self._store, self.environment, prompt.overrides.context)
        self.turn_runner.check_model(prompt.overrides)
        await self._store.check_space()
        turn = self.turn
        if prompt.expect_turn_id is not None and (turn is None or turn.id != prompt.expect_turn_id):
            raise Refused(
                "precondition_failed",
                "`expectTurnId` is not the running turn",
                params={"turnId": turn.id if turn else None},
            )
        if prompt.delivery == "interrupt" and turn:
            turn.cancel("cancelled")
            # Safe under the chat's lock: `_finish` commits the end without it. If it took the lock, this would
            # deadlock.
            await turn.wait_ended()
            turn = self.turn
        elif turn and (prompt.delivery == "reject" or prompt.replace):
            raise event_factory.turn_in_progress()
        joins = turn is not None and turn.takes_steers and turn.engine != DIRECT_ENGINE
        if turn and joins and prompt.delivery == "steer" and not turn.ending:
            return await self._steer(turn, prompt)
        if prompt.delivery != "interrupt" and (turn or (self.queue and not self.chat.queue_paused)):
            return await self._enqueue(prompt)
        rewound = await self._rewind_events(prompt.replace) if prompt.replace else []
        waiting = Prompt(prompt.id, new_id("t"), prompt.content, prompt.delivery, prompt.overrides)
        return await self._start(waiting, before=rewound)

    async def _send_call(self, prompt: IncomingPrompt) -> PromptReceipt | None:
        await self._store.check_space()
        turn = self.turn
        if turn is None:
            started = Prompt(prompt.id, new_id("t"), prompt.content, prompt.delivery, prompt.overrides)
            return await self._start(started, before=[], engine_name=DIRECT_ENGINE)
        if turn.engine == DIRECT_ENGINE and not turn.ending and not turn.scope.cancel_called:
            return await self._steer(turn, prompt)
        return None

    async def _steer(self, turn: RunningTurn, prompt: IncomingPrompt) -> PromptReceipt:
        turn.steer(prompt.content)
        data = event_factory.accepted_data(
            prompt.id, turn.id, "steer", event_factory.user_item(turn.id, prompt.content)
        )
        stored = await self._record(NewEvent("prompt.accepted", data, turn.id))
        return PromptReceipt("steered", turn.id, stored[-1].seq)

    async def _enqueue(self, prompt: IncomingPrompt) -> PromptReceipt:
        if len(self.queue) >= MAX_QUEUED_PROMPTS:
            raise Refused(
                "overloaded",
                f"{MAX_QUEUED_PROMPTS} prompts are waiting in this chat already",
                retryable=True,
                retry_after_ms=1000,
                params={"limit": MAX_QUEUED_PROMPTS},
            )
        position = len(self.queue) + 1
        waiting = Prompt(prompt.id, new_id("t"), prompt.content, prompt.delivery, prompt.overrides)
        stored = await self._record(
            event_factory.prompt_event(
                "prompt.queued", waiting, position=position, overrides=prompt.overrides
            )
        )
        self.queue.append(waiting)
        if self.turn is None:
            self._advance_soon()
        return PromptReceipt("queued", waiting.turn_id, stored[-1].seq, position)

    async def _start(
        self,
        prompt: Prompt,
        *,
        before: list[NewEvent],
        continued: Turn | None = None,
        engine_name: str | None = None,
    ) -> PromptReceipt:
        await self._store.check_space()
        head = self.chat.head
        for event in before:
            head = event.data["head"]
        engine, model = await self._engine_and_model(prompt, engine_name)
        item = None if continued else event_factory.user_item(prompt.turn_id, prompt.content)
        accepted = event_factory.accepted_data(prompt.id, prompt.turn_id, prompt.delivery, item)
        started = {"promptId": prompt.id, "model": model, "engine": engine.name, "parentTurnId": head}
        events = [
            *before,
            NewEvent("prompt.accepted", accepted, prompt.turn_id),
            NewEvent("turn.started", {k: v for k, v in started.items() if v is not None}, prompt.turn_id),
            NewEvent("chat.state", {"state": "running"}),
        ]
        title = titles.first_words(prompt.content) if self.chat.title is None else None
        if title:
            events.append(NewEvent("chat.renamed", {"title": title, "by": "sidecar"}))
        stored = await self._record(*events)
        self.chat = msgspec.structs.replace(
            self.chat,
            head=prompt.turn_id,
            state="running",
            title=self.chat.title or title,
            turns=self.chat.turns + 1,
            model=model,
        )
        turn = self.turn = RunningTurn(
            prompt.turn_id,
            prompt.id,
            self.recorder,
            self.chat.usage,
            self.environment.view_events,
            takes_steers=engine.capabilities.takes_steers,
            engine=engine.name,
        )
        turn.log_start(self.chat.key, model)
        self._services.tasks.start_soon(self._run, turn, prompt, engine, model, continued)
        return PromptReceipt("started", turn.id, stored[len(before)].seq)

    async def _engine_and_model(self, prompt: Prompt, engine_name: str | None) -> tuple[EngineEntry, str]:
        """The engine that runs the prompt's turn, and the model that it uses."""
        in_force = self.config
        engine = self.turn_runner.engine(engine_name or in_force.engine)
        model = prompt.overrides.model or in_force.model
        return engine, await self.turn_runner.model(model) if engine.capabilities.calls_provider else model

    async def _run(
        self, turn: RunningTurn, prompt: Prompt, engine: EngineEntry, model: str, continued: Turn | None
    ) -> None:
        reason: EndReason = "end_turn"
        error: Failure | None = None
        try:
            with turn.scope:
                compact_first = partial(auto_compaction.compact_if_full, self, turn)
                reason = await self.turn_runner.run(
                    engine, self.chat, self.config, turn, prompt, model, continued, compact_first
                )
            if turn.scope.cancelled_caught:
                reason = turn.cancel_reason
        except Failure as failure:
            reason, error = "error", failure
        except MemoryError:
            reason, error = "error", out_of_memory()
        except Exception:
            # A bug ends its turn, never the other chats.
            logger.exception("a turn failed", extra={"session_id": self.chat.key.session_id})
            reason, error = (
                "error",
                Failure("internal_error", "The turn failed inside the sidecar; its log says why"),
            )
        turn.log_end(reason, error)
        turn.ending = True
        with anyio.CancelScope(shield=True):
            try:
                await self._finish(turn, reason, error)
            except Failure as failure:
                logger.error("the end of a turn could not be committed", extra={"error": failure.message})
                self._end_turn(turn)

    async def _finish(self, turn: RunningTurn, reason: EndReason, error: Failure | None) -> None:
        """Commit the ends of the turn and of its items, with retries; then the next prompt may start."""
        self.recorder.forget_failure()
        refused = error is not None and error.reason == "prompt_blocked"
        hidden = await self._rewind_events(turn.id) if refused else []
        pauses = reason == "error" and bool(self.queue) and not self.chat.queue_paused
        events = [
            *hidden,
            *([event_factory.queue_event(True, "failed")] if pauses else []),
            *turn.closing_events(STATUS_OF_REASON[reason]),
            turn_ended_event(turn.id, reason, turn.usage, failure_data(error) if error else None),
            NewEvent("chat.state", {"state": "idle"}),
        ]
        stored = None if isinstance(error, LeaseLost) else await self._commit_turn_end(turn, events)
        if stored is None:
            await self._yield_to_new_owner(turn)
            return
        # `cancel` returns it. By type: events may be added behind it.
        turn.end_seq = next(event.seq for event in stored if event.type == "turn.ended")
        self.resume_snapshots.turn_ended(turn.id, reason, turn.used_tools)
        self.chat = msgspec.structs.replace(
            self.chat,
            state="idle",
            head=hidden[0].data["head"] if hidden else self.chat.head,
            usage=self.chat.usage.plus(turn.usage),
            queue_paused=self.chat.queue_paused or pauses,
        )
        self._end_turn(turn)
        self.run_in_background(auto_compaction.compact_after_turn, self, self.turn_runner)
        self.run_in_background(self.resume_snapshots.after_turn)
        if self.chat.project_path:
            self.run_in_background(self._after_turn, self)
        first = self.chat.turns == 1 and reason == "end_turn"
        if first and self._services.model_titles(self.chat.project_path):
            self.run_in_background(self._title_by_model, turn.id)

    async def _commit_turn_end(self, turn: RunningTurn, events: list[NewEvent]) -> list[StoredEvent] | None:
        """Commit the end of the turn, retrying while the disk fails. None when another process has the chat now."""
        while True:
            try:
                releases = not self.queue and not self.compacting
                return await self.recorder.record(*events, release=releases, last=True)
            except StorageFailed as failure:
                if failure.reason == "schema_newer":
                    return None  # permanent: the newer program ends the turn when it opens the chat
                logger.error("cannot commit the end of a turn", extra={"error": failure.message})
                turn.report_failure(failure)
                await anyio.sleep(RETRY_STORAGE_S)
            except Failure:
                return None

    async def _yield_to_new_owner(self, turn: RunningTurn) -> None:
        """End the turn locally: another process took the chat over and has written the turn's end."""
        self.recorder.forget_failure()
        self.recorder.drop_unwritten()
        await self.refresh()
        turn.end_seq = self.recorder.last_seq
        self._end_turn(turn)

    async def _title_by_model(self, turn_id: str) -> None:
        """Ask the model for a title after the first turn, unless the user has set one."""
        try:
            turn = await self._store.turns.get(self.chat.id, turn_id)
            if turn is None or self.chat.title_by == "user":
                return
            if title := await self.turn_runner.title(turn):
                await self.rename(title, by="sidecar")
        except Failure as failure:
            logger.info("no title from the model", extra={"error": failure.message})

    def _end_turn(self, turn: RunningTurn) -> None:
        self.turn = None
        self.recorder.forget_failure()
        self.environment.turn_ended(turn)
        turn.finish()
        self._advance_soon()

    async def _retry(
        self, prompt_id: str, turn_id: str | None, in_place: bool, overrides: PromptOverrides
    ) -> PromptReceipt:
        known = await self._store.turns.prompt(self.chat.id, prompt_id)
        if known:
            return PromptReceipt("duplicate", known.turn_id or None, known.seq)
        self.turn_runner.check_model(overrides)
        await self._store.check_space()
        if self.turn:
            raise event_factory.turn_in_progress()
        await self.refresh_unless_owner()
        old = await self._turn_to_retry(turn_id)
        prompt = Prompt(prompt_id, new_id("t"), [], "queue", overrides)
        if in_place:
            if old.id != self.chat.head or old.status not in ("interrupted", "cancelled", "failed"):
                raise Refused(
                    "precondition_failed",
                    "Only the last turn can go on, and only one that was interrupted, was cancelled or failed",
                    params={"turnId": old.id, "status": old.status},
                )
            if not has_refused_prompt(old):  # a refused prompt is not in the history, so it is sent again
                return await self._start(prompt, before=[], continued=await self._merge_continued(old))
        said = await self._merge_continued(old)
        content = next((item.content for item in said.items if item.type == "user" and item.content), [])
        before = await self._rewind_events(said.id)
        return await self._start(msgspec.structs.replace(prompt, content=content), before=before)

    async def _turn_to_retry(self, turn_id: str | None) -> Turn:
        wanted = turn_id or self.chat.head
        if wanted is None:
            raise Refused("not_found", "This chat has no turn to retry")
        turn = await self._store.turns.get(self.chat.id, wanted)
        if turn is None or turn.hidden:
            raise unknown_turn(wanted)
        if turn.status == "running":
            raise UnclosedChat()  # not running here: its owner is another process, or dead
        return turn

    async def _merge_continued(self, turn: Turn) -> Turn:
        """Merge the turn with the earlier ones that it continued: everything since the prompt."""
        while not any(item.type == "user" for item in turn.items) and turn.parent_turn_id:
            earlier = await self._store.turns.get(self.chat.id, turn.parent_turn_id)
            assert earlier is not None
            turn = Turn(
                id=earlier.id,
                prompt_id=earlier.prompt_id,
                items=[*earlier.items, *turn.items],
                status=turn.status,
                model=turn.model,
                engine=turn.engine,
                started_at=earlier.started_at,
                parent_turn_id=earlier.parent_turn_id,
            )
        return turn

    async def _rewind_events(self, turn_id: str) -> list[NewEvent]:
        """The event that hides a turn and all later ones."""
        hidden = await self._store.turns.visible_from(self.chat.id, turn_id)
        turn = await self._store.turns.get(self.chat.id, turn_id)
        if not hidden or turn is None:
            raise unknown_turn(turn_id)
        return [NewEvent("chat.rewound", {"head": turn.parent_turn_id, "hidden": hidden})]

    async def _cancel_without_turn(self, turn_id: str | None) -> CancelResult:
        if turn_id is None:
            return CancelResult("nothing_running")
        turn = await self._store.turns.get(self.chat.id, turn_id)
        if turn is None:
            await self.refresh_unless_owner()
            if any(prompt.turn_id == turn_id for prompt in self.queue):
                raise invalid_param("turnId", "a turn that runs; use prompt/remove")
            raise unknown_turn(turn_id)
        if turn.status != "running":
            return CancelResult("already_ended", await self._store.turns.end_seq(self.chat.id, turn_id))
        return CancelResult("nothing_running")
