"""One chat's session in this process: prompts, their queue, and the turns that answer them. The heart of the house.

Every change runs under the chat's lock, in the order of the requests, and is committed before it counts.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Literal

import anyio
import msgspec

from ..model.chats import Prompt
from ..model.content import STATUS_OF_REASON, Block, EndReason, Turn
from ..model.events import NewEvent, StoredEvent
from ..model.failures import Failure, Refused, StorageFailed, invalid, no_memory
from ..store.leases import LeaseHeld, LeaseLost, Unclosed
from ..store.turns import unknown_turn
from . import closure, config, facts, titles, upkeep
from .arrivals import Cancelled, Incoming, Sent
from .leased import LeasedChat
from .running import RunningTurn, described, new_id, turn_ended

logger = logging.getLogger(__name__)

MAX_QUEUED = 256
"""More waiting prompts than this are a runaway client, not a person."""

RETRY_STORAGE_S = 1.0
"""How often a turn that cannot commit its end tries again."""


class Session(LeasedChat):
    """What a chat can be asked to do."""

    async def send(self, prompt: Incoming) -> Sent:
        """Start the prompt's turn, queue it, or steer the running turn with it."""
        if prompt.delivery == "steer" and self.turn and self.desk.has_hooks():
            from .hook_turns import on_steer

            prompt = await on_steer(self, prompt)
        return await self._changing(lambda: self._send(prompt))

    async def retry(self, prompt_id: str, turn_id: str | None, here: bool, overrides: dict[str, Any]) -> Sent:
        """Answer a turn's prompt anew, or go on where an unfinished turn stopped."""
        return await self._changing(lambda: self._retry(prompt_id, turn_id, here, overrides))

    async def edit(self, prompt_id: str, content: list[Block], revision: int | None) -> None:
        async def change() -> None:
            await self.look()
            place, prompt = self._waiting(prompt_id, revision)
            edited = msgspec.structs.replace(prompt, content=content, revision=prompt.revision + 1)
            await self._record(facts.prompt_event("prompt.edited", edited, revision=edited.revision))
            self.queue[place] = edited

        await self._changing(change)

    async def remove(self, prompt_id: str, revision: int | None) -> None:
        async def change() -> None:
            await self.look()
            place, prompt = self._waiting(prompt_id, revision)
            await self._record(facts.removed(prompt))
            del self.queue[place]
            await self._release_if_idle()

        await self._changing(change)

    async def resume_queue(self) -> None:
        async def change() -> None:
            await self._check_writable()
            await self.look()
            if self.chat.queue_paused:
                await self._record(facts.queue_event(False, "resumed"))
                self.chat = msgspec.structs.replace(self.chat, queue_paused=False)
            self._advance_soon()

        await self._changing(change)

    async def cancel(self, turn_id: str | None, queue: Literal["pause", "keep", "clear"]) -> Cancelled:
        """End the running turn; returns once its end is committed."""
        async with self.lock:
            turn = self.turn
            if turn is None or (turn_id is not None and turn_id != turn.id):
                return await self._cancel_nothing(turn_id)
            if queue == "clear":
                await self._clear_queue()
            elif queue == "pause" and not turn.ending:
                await self._pause("cancelled")
        ended_before = turn.ending
        turn.cancel("cancelled")
        await turn.ended()
        return Cancelled("already_ended" if ended_before else "cancelled", turn.end_seq)

    async def rename(self, title: str | None, by: str = "user") -> int:
        """Set the title, or let the chat's first words be it again."""

        async def change() -> int:
            chosen = title if title is not None else await self._first_words()
            namer = by if title is not None else "sidecar"
            stored = await self._record(NewEvent("chat.renamed", {"title": chosen, "by": namer}))
            self.chat = msgspec.structs.replace(self.chat, title=chosen, title_by=namer)
            await self._release_if_idle()
            return stored[-1].seq

        return await self._changing(change)

    async def configure(self, changes: dict[str, Any], project_path: str | None = None) -> int:
        """Set or clear keys of the chat's own configuration, or bind it to another project."""

        async def change() -> int:
            changes_ = dict(changes)
            project = changes_.pop("projectPath", None) or project_path or self.chat.project_path
            stored_config = config.merged(self.chat.config, changes_)
            if stored_config == self.chat.config and project == self.chat.project_path:
                return self.recorder.last_seq
            in_force = config.effective(self._around.defaults(project), stored_config, project)
            data = {"config": in_force, "stored": stored_config, "projectPath": project}
            stored = await self._record(NewEvent("config.updated", data))
            self.chat = msgspec.structs.replace(self.chat, config=stored_config, project_path=project)
            await self._release_if_idle()
            self.beside(self._warm_desk)
            return stored[-1].seq

        return await self._changing(change)

    async def append(self, events: list[NewEvent]) -> None:
        """Bring in events from outside, such as an import's."""

        async def change() -> None:
            if self.turn:
                raise facts.busy()
            await self._record(*events)
            await self._release_if_idle()
            await self.refresh()

        await self._changing(change)

    async def interrupt(self) -> None:
        """The sidecar leaves: end the turn, start no other, and let waiting prompts wait for a person."""
        self.leaving = True
        async with self.lock:  # whoever was about to start a turn has done so by now
            turn = self.turn
            if turn or self.holds_lease:
                await self._pause("restart")
        if turn:
            turn.cancel("interrupted")
            await turn.done.wait()
        await self.end_session("other")
        if self.compacting:
            pending = (await self._store.snapshot(self.chat.id, 0, 0)).pending
            await self._record(*[closure.end_of(asked) for asked in pending])
        await self.continuity.leave("exit")

    def rest(self) -> None:
        """Nobody looks at the chat here any more."""
        self.beside(self.continuity.leave, "close")

    def dispossessed(self) -> None:
        """Another process holds the lease now: the turn's next commit, its end, finds out and yields."""
        if self.turn:
            self.turn.cancel("interrupted")
        else:
            self.recorder.generation = None

    async def end_for_deletion(self) -> None:
        """Stop everything: the chat is about to be purged."""
        await self.end_session("clear")
        self.queue = []
        if self.turn:
            self.turn.cancel("cancelled")
            await self.turn.ended()
        await self.recorder.settle()

    async def _send(self, prompt: Incoming) -> Sent:
        known = await self._store.prompt(self.chat.id, prompt.id)
        if known:
            return Sent("duplicate", known.turn_id or None, known.seq)
        turn = self.turn
        if prompt.expect_turn_id is not None and (turn is None or turn.id != prompt.expect_turn_id):
            raise Refused(
                "precondition_failed",
                "`expectTurnId` is not the turn that runs now",
                params={"turnId": turn.id if turn else None},
            )
        if prompt.delivery == "interrupt" and turn:
            turn.cancel("cancelled")
            await turn.ended()
            turn = self.turn
        elif turn and (prompt.delivery == "reject" or prompt.replace):
            raise facts.busy()
        if turn and prompt.delivery == "steer" and not turn.ending:
            return await self._steer(turn, prompt)
        if prompt.delivery != "interrupt" and (turn or (self.queue and not self.chat.queue_paused)):
            return await self._enqueue(prompt)
        rewound = await self._rewound_before(prompt.replace) if prompt.replace else []
        waiting = Prompt(prompt.id, new_id("t"), prompt.content, prompt.delivery, prompt.overrides)
        return await self._start(waiting, before=rewound)

    async def _steer(self, turn: RunningTurn, prompt: Incoming) -> Sent:
        turn.steer(prompt.content)
        data = facts.accepted(prompt.id, turn.id, "steer", facts.user_item(turn.id, prompt.content))
        stored = await self._record(NewEvent("prompt.accepted", data, turn.id))
        return Sent("steered", turn.id, stored[-1].seq)

    async def _enqueue(self, prompt: Incoming) -> Sent:
        if len(self.queue) >= MAX_QUEUED:
            raise Refused(
                "overloaded",
                f"{MAX_QUEUED} prompts wait in this chat already",
                retryable=True,
                retry_after_ms=1000,
                params={"limit": MAX_QUEUED},
            )
        position = len(self.queue) + 1
        waiting = Prompt(prompt.id, new_id("t"), prompt.content, prompt.delivery, prompt.overrides)
        stored = await self._record(
            facts.prompt_event("prompt.queued", waiting, position=position, overrides=prompt.overrides)
        )
        self.queue.append(waiting)
        if self.turn is None:
            self._advance_soon()
        return Sent("queued", waiting.turn_id, stored[-1].seq, position)

    async def _start(self, prompt: Prompt, *, before: list[NewEvent], goes_on: Turn | None = None) -> Sent:
        """Commit the prompt and its turn's start as one, then run the turn."""
        head = self.chat.head
        for event in before:
            head = event.data["head"]
        model = await self.answering.model(str(prompt.overrides.get("model") or self.config["model"]))
        item = None if goes_on else facts.user_item(prompt.turn_id, prompt.content)
        accepted = facts.accepted(prompt.id, prompt.turn_id, prompt.delivery, item)
        started = {"promptId": prompt.id, "model": model, "engine": "native", "parentTurnId": head}
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
            prompt.turn_id, prompt.id, self.recorder, self.chat.usage, self.desk.clerk_for, self.desk.looked
        )
        self._around.tasks.start_soon(self._run, turn, prompt, model, goes_on)
        return Sent("started", turn.id, stored[len(before)].seq)

    async def _run(self, turn: RunningTurn, prompt: Prompt, model: str, goes_on: Turn | None) -> None:
        reason: EndReason = "end_turn"
        error: Failure | None = None
        try:
            with turn.scope:
                make_room = partial(upkeep.make_room, self, turn)
                reason = await self.answering.run(
                    self.chat, self.config, turn, prompt, model, goes_on, make_room
                )
            if turn.scope.cancelled_caught:
                reason = turn.cancel_reason
        except Failure as failure:
            reason, error = "error", failure
        except MemoryError:
            reason, error = "error", no_memory()
        except Exception:
            # A bug ends its turn, never the other chats.
            logger.exception("a turn failed", extra={"session_id": self.chat.key.session_id})
            reason, error = (
                "error",
                Failure("internal_error", "The turn failed inside the sidecar; its log says why"),
            )
        turn.ending = True
        with anyio.CancelScope(shield=True):
            try:
                await self._finish(turn, reason, error)
            except Failure as failure:
                logger.error("a turn was left open", extra={"error": failure.message})
                self._ended(turn)

    async def _finish(self, turn: RunningTurn, reason: EndReason, error: Failure | None) -> None:
        """Commit the ends of the turn and of its items, however often it takes; then the next prompt may start."""
        self.recorder.forget_failure()
        refused = error is not None and error.reason == "prompt_blocked"
        hidden = await self._rewound_before(turn.id) if refused else []
        pauses = reason == "error" and bool(self.queue) and not self.chat.queue_paused
        events = [
            *hidden,
            *([facts.queue_event(True, "failed")] if pauses else []),
            *turn.closing_events(STATUS_OF_REASON[reason]),
            turn_ended(turn.id, reason, turn.usage, described(error) if error else None),
            NewEvent("chat.state", {"state": "idle"}),
        ]
        stored = None if isinstance(error, LeaseLost) else await self._commit_end(turn, events)
        if stored is None:
            await self._yield_to_new_owner(turn)
            return
        turn.end_seq = stored[-2].seq
        self.continuity.turn_ended(turn.id, reason, turn.worked)
        self.chat = msgspec.structs.replace(
            self.chat,
            state="idle",
            head=hidden[0].data["head"] if hidden else self.chat.head,
            usage=self.chat.usage.plus(turn.usage),
            queue_paused=self.chat.queue_paused or pauses,
        )
        self._ended(turn)
        self.beside(upkeep.after_turn, self, self.answering)
        self.beside(self.continuity.after_turn)
        if self.chat.project_path:
            self.beside(self._tell_project)
        first = self.chat.turns == 1 and reason == "end_turn"
        if first and self._around.model_titles(self.chat.project_path):
            self.beside(self._name_by_model, turn.id)

    async def _commit_end(self, turn: RunningTurn, events: list[NewEvent]) -> list[StoredEvent] | None:
        """The events as stored, once the disk takes them; None when another process has taken the chat over."""
        while True:
            try:
                releases = not self.queue and not self.compacting
                return await self.recorder.record(*events, release=releases, last=True)
            except StorageFailed as failure:
                if failure.reason == "schema_newer":
                    return None  # for good: the newer program ends the turn when it opens the chat
                logger.error("cannot commit the end of a turn", extra={"error": failure.message})
                turn.stuck(failure)
                await anyio.sleep(RETRY_STORAGE_S)
            except Failure:
                return None

    async def _yield_to_new_owner(self, turn: RunningTurn) -> None:
        """Another process took the chat over and has written this turn's end; here it is a reader's now."""
        self.recorder.forget_failure()
        self.recorder.forget_unkept()
        await self.refresh()
        turn.end_seq = self.recorder.last_seq
        self._ended(turn)

    async def _tell_project(self) -> None:
        if self.desk.settings.project_files:
            from . import project_files

            await project_files.write(self)

    async def _name_by_model(self, turn_id: str) -> None:
        """Ask the model for a title after the first turn, unless the user has given one."""
        try:
            turn = await self._store.turn(self.chat.id, turn_id)
            if turn is None or self.chat.title_by == "user":
                return
            title = await self.answering.title(turn)
            if title and self.chat.title_by != "user":
                await self.rename(title, by="sidecar")
        except Failure as failure:
            logger.info("no title from the model", extra={"error": failure.message})

    def _ended(self, turn: RunningTurn) -> None:
        self.turn = None
        self.recorder.forget_failure()
        self.desk.turn_ended(turn)
        turn.finish()
        self._advance_soon()

    def _advance_soon(self) -> None:
        if self.queue and not self.chat.queue_paused and self.turn is None and not self.leaving:
            self.beside(self._advance)

    async def _advance(self) -> None:
        """Start the next waiting prompt."""

        async def change() -> None:
            if self.turn is None and self.queue and not self.chat.queue_paused:
                prompt = self.queue[0]
                await self._start(prompt, before=[])
                self.queue.remove(prompt)

        try:
            await self._changing(change)
        except Failure as failure:
            logger.error("a waiting prompt could not start", extra={"error": failure.message})

    async def _retry(
        self, prompt_id: str, turn_id: str | None, here: bool, overrides: dict[str, Any]
    ) -> Sent:
        known = await self._store.prompt(self.chat.id, prompt_id)
        if known:
            return Sent("duplicate", known.turn_id or None, known.seq)
        if self.turn:
            raise facts.busy()
        await self.look()
        old = await self._turn_to_retry(turn_id)
        prompt = Prompt(prompt_id, new_id("t"), [], "queue", overrides)
        if here:
            if old.id != self.chat.head or old.status not in ("interrupted", "cancelled", "failed"):
                raise Refused(
                    "precondition_failed",
                    "Only the last turn can go on, and only one that was interrupted, was cancelled or failed",
                    params={"turnId": old.id, "status": old.status},
                )
            return await self._start(prompt, before=[], goes_on=await self._unfinished(old))
        said = await self._unfinished(old)
        content = next((item.content for item in said.items if item.type == "user" and item.content), [])
        before = await self._rewound_before(said.id)
        return await self._start(msgspec.structs.replace(prompt, content=content), before=before)

    async def _turn_to_retry(self, turn_id: str | None) -> Turn:
        wanted = turn_id or self.chat.head
        if wanted is None:
            raise Refused("not_found", "This chat has no turn to retry")
        turn = await self._store.turn(self.chat.id, wanted)
        if turn is None or turn.hidden:
            raise unknown_turn(wanted)
        if turn.status == "running":
            raise Unclosed()  # not running here: its owner is another process, or gone
        return turn

    async def _unfinished(self, turn: Turn) -> Turn:
        """The turn together with the earlier ones that it only went on with: what was said since the prompt."""
        while not any(item.type == "user" for item in turn.items) and turn.parent_turn_id:
            earlier = await self._store.turn(self.chat.id, turn.parent_turn_id)
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

    async def _rewound_before(self, turn_id: str) -> list[NewEvent]:
        """The event that hides a turn and all after it."""
        hidden = await self._store.visible_from(self.chat.id, turn_id)
        turn = await self._store.turn(self.chat.id, turn_id)
        if not hidden or turn is None:
            raise unknown_turn(turn_id)
        return [NewEvent("chat.rewound", {"head": turn.parent_turn_id, "hidden": hidden})]

    async def _cancel_nothing(self, turn_id: str | None) -> Cancelled:
        snapshot = await self._store.snapshot(self.chat.id, 0, 0)
        if turn_id is not None:
            turn = await self._store.turn(self.chat.id, turn_id)
            if turn is None:
                waiting = any(prompt.turn_id == turn_id for prompt in self.queue)
                raise (
                    invalid("turnId", "a turn that runs; use prompt/remove")
                    if waiting
                    else unknown_turn(turn_id)
                )
            if turn.status != "running":
                return Cancelled("already_ended", await self._store.turn_end(self.chat.id, turn_id))
        lease = snapshot.lease
        if lease and self._store.other_holder(lease) and snapshot.chat.state != "idle":
            raise LeaseHeld(lease)
        return Cancelled("nothing_running")

    async def _clear_queue(self) -> None:
        if self.queue:
            await self._record(*[facts.removed(prompt) for prompt in self.queue])
            self.queue = []

    async def _pause(self, reason: str) -> None:
        if self.queue and not self.chat.queue_paused:
            await self._record(facts.queue_event(True, reason))
            self.chat = msgspec.structs.replace(self.chat, queue_paused=True)

    def _waiting(self, prompt_id: str, revision: int | None) -> tuple[int, Prompt]:
        for place, prompt in enumerate(self.queue):
            if prompt.id == prompt_id:
                if revision is not None and revision != prompt.revision:
                    raise Refused(
                        "precondition_failed",
                        "`revision`: the prompt was changed since",
                        params={"revision": prompt.revision},
                    )
                return place, prompt
        raise Refused(
            "not_found", f"No prompt {prompt_id!r} waits in this chat", params={"promptId": prompt_id}
        )

    async def _first_words(self) -> str | None:
        _, page = await self._store.history(self.chat.id, after="turn.0", limit=1, max_bytes=1)
        items = page.turns[0].items if page.turns else []
        return next(
            (titles.first_words(item.content) for item in items if item.type == "user" and item.content), None
        )
