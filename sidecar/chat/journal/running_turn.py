"""A turn while it runs in this process: its items as they grow, its cancellation, and messages that steer it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import anyio
import msgspec

from ...context.materials import Manifest
from ...model.chats import ChatKey
from ...model.content import (
    Block,
    EndReason,
    InputOutcome,
    Item,
    ItemStatus,
    PermissionOutcome,
    ResolvedBy,
    StoredError,
    Usage,
)
from ...model.events import NewEvent
from ...model.failures import Failure, ProviderFailed, StorageFailed
from ...model.figures import cost_of
from ...model.sent import SentRequest
from ...providers.base import TokenUsage, ToolCall, UserMessage
from ...settings.engine_keys import NATIVE_ENGINE
from ...system.clock import now
from ...tools.base import PlanEntry
from ...tools.toolbox import CallResult
from .recorder import Recorder

logger = logging.getLogger(__name__)

MAX_DELTA_CHARACTERS = 16 * 1024
"""Code points of one delta: at four bytes each it still fits the frame's bound for a run."""

MAX_TITLE = 200
"""One line; the rest of a long path is in the call's input."""

MAX_LOGGED_NAME = 80
"""Characters of a tool's name in the log: a model may call what does not exist."""

_PLAN_MARKS = {"completed": "x", "in_progress": "~"}

_TERMINAL = {"message": "message.completed", "thought": "thought.completed", "tool": "tool.ended"}


RequestKind = Literal["permission", "input"]
RequestOutcome = PermissionOutcome | InputOutcome

ViewEvents = Callable[[Item, CallResult], list[NewEvent]]
"""Returns further events for a call that has ended, such as files that it opened."""


class RunningTurn:
    """Implements the engine's `Sink`, and is the session's view of a turn that has not ended.

    `view_events` gives the files that a finished call brought into view.
    """

    def __init__(
        self,
        id: str,
        prompt_id: str,
        recorder: Recorder,
        total: Usage,
        view_events: ViewEvents,
        *,
        takes_steers: bool = True,
        engine: str = NATIVE_ENGINE,
    ) -> None:
        self.id = id
        self.prompt_id = prompt_id
        self.engine = engine
        self.takes_steers = takes_steers
        """Whether its engine reads messages that are added while it runs."""
        self.usage = Usage()
        self.done = anyio.Event()
        self.end_seq: int | None = None
        self.used_tools = False
        """Whether a tool was called."""
        self.ending = False
        self._end_reported = anyio.Event()
        self._failure: Failure | None = None
        self._scope = anyio.CancelScope()
        self._reason: EndReason = "cancelled"
        self._recorder = recorder
        self._chat_usage = total
        self._steers: list[UserMessage] = []
        self._steered = anyio.Event()
        self._open_item: Item | None = None
        self._open_texts: list[str] = []
        self._open_tools: dict[str, Item] = {}
        self._view_events = view_events
        self._requests: dict[str, RequestKind] = {}
        self._outcomes: dict[str, RequestOutcome] = {}
        self._stopped = False
        self._sent_requests = 0
        self._began = now()
        self._logged: dict[str, str | None] = {"turn": id}
        self.window: dict[str, int] = {}
        """How full the context window is: `used` tokens of the `budget`. Empty when the model has no known window."""
        self.prices: dict[str, float] | None = None
        """The price of the model's tokens, in US dollars per million, where it is known."""
        self.on_usage: Callable[[int], Awaitable[None]] | None = None
        """Called with the number of tokens that the provider counted in a request."""
        self.on_stop: Callable[[str], Awaitable[list[UserMessage]]] | None = None
        """Called with the model's text before it stops; returned messages continue the turn instead."""

    @property
    def scope(self) -> anyio.CancelScope:
        return self._scope

    @property
    def cancel_reason(self) -> EndReason:
        return self._reason

    def cancel(self, reason: EndReason) -> None:
        """End the turn now; its text so far is kept."""
        # The first reason counts: a cancel by the user must not become an interruption because the process
        # exits too.
        if not self._scope.cancel_called:
            self._reason = reason
            self._scope.cancel()

    def report_failure(self, failure: Failure) -> None:
        """Report that the end cannot be committed for now; the session retries it."""
        self._failure = failure
        self._end_reported.set()

    def finish(self) -> None:
        """Mark the end as committed."""
        self._failure = None
        self.done.set()
        self._end_reported.set()

    async def wait_ended(self) -> None:
        """Wait for the committed end; raises the failure when the disk does not accept it."""
        await self._end_reported.wait()
        if self._failure:
            raise self._failure

    def steer(self, content: list[Block]) -> None:
        self._steers.append(UserMessage(content))
        self._steered.set()

    async def text(self, text: str) -> None:
        await self._append_text("message", text)

    async def thought(self, text: str) -> None:
        await self._append_text("thought", text)

    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None:
        self.used_tools = True
        await self._close_open_item("completed")
        item = Item(
            id=new_id("i"),
            turn_id=self.id,
            type="tool",
            status="running",
            started_at=now(),
            title=title[:MAX_TITLE],
            name=call.name,
            kind=kind,
            input=call.input,
        )
        self._open_tools[call.id] = item
        await self._recorder.buffer(NewEvent("tool.started", {"item": item}, self.id))

    async def tool_updated(self, call: ToolCall, item: Item) -> None:
        """Commit the item of a call before the call does what the item now says."""
        self._open_tools[call.id] = item
        await self._recorder.record(NewEvent("tool.updated", {"item": item}, self.id))

    async def tool_changed(self, call: ToolCall, title: str) -> None:
        """Replace the title and the input of a call that has not ended."""
        known = self._open_tools.get(call.id)
        if known is None:
            return
        item = msgspec.structs.replace(known, title=title[:MAX_TITLE], input=call.input)
        if item != known:
            self._open_tools[call.id] = item
            await self._recorder.buffer(NewEvent("tool.updated", {"item": item}, self.id))

    async def tool_output(self, call: ToolCall, text: str) -> None:
        """Append a piece of what a tool prints while it runs."""
        item = self._open_tools.get(call.id)
        for start in range(0, len(text) if item else 0, MAX_DELTA_CHARACTERS):
            assert item is not None
            await self._recorder.delta(
                "tool.output", self.id, item.id, text[start : start + MAX_DELTA_CHARACTERS]
            )

    async def tool_ended(self, call: ToolCall, result: CallResult) -> None:
        outcome = result.outcome
        item = self._open_tools.pop(call.id)
        output = {"text": outcome.text, "truncated": result.truncated}
        found = {"ref": result.ref, "source": result.source, "content": result.content}
        finished = msgspec.structs.replace(
            item,
            status="denied" if outcome.denied else "failed" if outcome.failed else "completed",
            ended_at=now(),
            output=output | {name: value for name, value in found.items() if value},
            locations=[{"path": path} for path in outcome.paths] or None,
            exit_code=outcome.exit_code,
            not_run=outcome.not_run,
        )
        measured = {"measured": outcome.measured} if outcome.measured else {}
        self._log_tool(finished)
        for event in [
            NewEvent("tool.ended", {"item": finished, **measured}, self.id),
            *self._view_events(finished, result),
        ]:
            await self._recorder.buffer(event)

    def log_start(self, chat: ChatKey, model: str) -> None:
        """Log what begins: names and figures, never a text."""
        self._logged = {"chat": chat.chat_id, "session": chat.session_id, "turn": self.id}
        logger.info("turn started", extra={**self._logged, "model": model, "engine": self.engine})
        self._logged["model"] = model

    def log_end(self, reason: EndReason, error: Failure | None) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        fields = {
            "ms": now() - self._began,
            "error": error and error.name,
            "inputTokens": self.usage.input_tokens,
            "outputTokens": self.usage.output_tokens,
            "cachedTokens": self.usage.cached_tokens,
            "cost": self.usage.cost,
        }
        known = {name: value for name, value in fields.items() if value is not None}
        logger.info("turn ended", extra={**self._logged, "reason": reason, **known})

    def _log_tool(self, item: Item) -> None:
        fields = {"tool": (item.name or "")[:MAX_LOGGED_NAME], "status": item.status}
        ms = (item.ended_at or 0) - item.started_at
        logger.info("tool ended", extra={**self._logged, **fields, "ms": ms})

    def item_of(self, call: ToolCall) -> Item:
        return self._open_tools[call.id]

    def stop(self) -> None:
        """End the turn after the current call, because the user asked to stop."""
        self._stopped = True

    def stopped(self) -> bool:
        return self._stopped

    async def limit_reached(self, limit: str) -> None:
        await self._recorder.buffer(
            NewEvent("notice", {"code": "limit_reached", "params": {"limit": limit}}, self.id)
        )

    async def record(self, *events: NewEvent) -> None:
        """Commit events of this turn."""
        await self._recorder.record(*events)

    async def note_permission(self, outcome: PermissionOutcome) -> None:
        """Record what was allowed without asking, in the next commit."""
        await self._recorder.buffer(NewEvent("permission.resolved", outcome, self.id))

    async def plan(self, entries: list[PlanEntry]) -> None:
        """Record the model's plan, as one item that is updated."""
        at = now()
        item = Item(
            id=f"plan-{self.id}",
            turn_id=self.id,
            type="plan",
            status="completed",
            started_at=at,
            ended_at=at,
            title="Plan",
            text="\n".join(f"- [{_PLAN_MARKS.get(entry.status, ' ')}] {entry.content}" for entry in entries),
            entries=msgspec.to_builtins(entries),
        )
        await self._recorder.buffer(NewEvent("plan.updated", {"item": item}, self.id))

    async def request_opened(self, kind: RequestKind, id: str, request: msgspec.Struct) -> None:
        """Record a request to the user; the chat waits for it."""
        self._requests[id] = kind
        state = NewEvent("chat.state", {"state": "requires_action"})
        await self._recorder.record(NewEvent(f"{kind}.requested", request, self.id), state)

    async def request_closed(self, kind: RequestKind, id: str, outcome: RequestOutcome) -> None:
        """Record the outcome of a request; the chat continues when no other request is open."""
        del self._requests[id]
        events = [NewEvent(f"{kind}.resolved", outcome, self.id)]
        if not self._requests:
            events.append(NewEvent("chat.state", {"state": "running"}))
        try:
            await self._recorder.record(*events)
        except StorageFailed:
            self._requests[id] = kind  # still open: another answer, or the end of the turn, closes it
            raise

    @property
    def unanswered(self) -> dict[str, RequestOutcome]:
        """The outcomes of requests that were unanswered when the turn ended."""
        return self._outcomes

    async def step_ended(self, usage: TokenUsage) -> None:
        await self._close_open_item("completed")
        step = Usage(input_tokens=usage.input, output_tokens=usage.output, cached_tokens=usage.cached)
        self.usage = self.usage.plus(msgspec.structs.replace(step, cost=cost_of(step, self.prices)))
        total = self._chat_usage.plus(self.usage)
        data = {"turn": self.usage, "total": total, "window": self.window or None}
        if self.on_usage and usage.input:
            await self.on_usage(usage.input)
        await self._recorder.buffer(NewEvent("usage.updated", data, self.id))

    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None:
        """Record that the model failed before its first token, and is called again in `wait` seconds."""
        retry_at = now() + int(wait * 1000)
        data = {"error": failure_data(failure), "willRetry": True, "attempt": attempt, "retryAt": retry_at}
        await self._recorder.buffer(NewEvent("error", data, self.id))
        await self._recorder.buffer(NewEvent("chat.state", {"state": "retrying"}))

    async def retry_started(self) -> None:
        await self._recorder.buffer(NewEvent("chat.state", {"state": "running"}))

    async def notice(self, code: str, params: dict[str, Any]) -> None:
        """Record what the engine has to say besides its answer."""
        await self._recorder.buffer(NewEvent("notice", {"code": code, "params": params}, self.id))

    def set_window(self, used: int, budget: int) -> None:
        self.window = {"used": used, "budget": budget}

    async def note_request(self, manifest: Manifest) -> None:
        """Record what the request that is about to be sent contains; the texts of its blocks are stored after it."""
        self._sent_requests += 1
        texts = [block.text for block in manifest.blocks]
        event = NewEvent("context.assembled", manifest.without_text(), self.id)
        await self._recorder.defer(event, SentRequest(self.id, self._sent_requests, texts))

    async def note(self, event: str, data: Mapping[str, object] | msgspec.Struct) -> None:
        """Record an event about the request that is about to be sent."""
        await self._recorder.defer(NewEvent(event, data, self.id))

    async def before_stop(self, said: str) -> list[UserMessage]:
        return await self.on_stop(said) if self.on_stop else []

    def take_steers(self) -> list[UserMessage]:
        """Take what the user added since the last request; when that is empty, the turn may end."""
        steers, self._steers = self._steers, []
        self._steered = anyio.Event()
        return steers

    async def wait_for_steers(self) -> None:
        """Wait until there is something for `take_steers`."""
        await self._steered.wait()

    def closing_events(self, status: ItemStatus) -> list[NewEvent]:
        """The end events of all requests and items that have none yet."""
        by: ResolvedBy = "restart" if status == "interrupted" else "cancel"
        # Kept after the turn: a late answer gets the same outcome that the journal has.
        self._outcomes = {id: unanswered_outcome(kind, id, by) for id, kind in self._requests.items()}
        requests = [
            NewEvent(f"{kind}.resolved", self._outcomes[id], self.id) for id, kind in self._requests.items()
        ]
        items = [self._finish_open_item(status)] if self._open_item else []
        items += [with_end(item, status) for item in self._open_tools.values()]
        self._open_item, self._open_tools, self._requests = None, {}, {}
        return requests + [terminal_event(item) for item in items]

    async def _append_text(self, type: str, text: str) -> None:
        if not text:
            return
        if self._open_item is None or self._open_item.type != type:
            await self._close_open_item("completed")
            self._open_item = Item(
                id=new_id("i"), turn_id=self.id, type=type, status="running", started_at=now()
            )
            await self._recorder.buffer(NewEvent(f"{type}.started", {"item": self._open_item}, self.id))
        for start in range(0, len(text), MAX_DELTA_CHARACTERS):
            piece = text[start : start + MAX_DELTA_CHARACTERS]
            # Before the text is kept: what a failed commit has lost must not be part of the item either.
            self._recorder.raise_failure()
            self._open_texts.append(piece)
            await self._recorder.delta(f"{type}.delta", self.id, self._open_item.id, piece)

    async def _close_open_item(self, status: ItemStatus) -> None:
        if self._open_item:
            event = terminal_event(self._finish_open_item(status))
            self._open_item = None
            await self._recorder.buffer(event)

    def _finish_open_item(self, status: ItemStatus) -> Item:
        assert self._open_item is not None
        item = msgspec.structs.replace(with_end(self._open_item, status), text="".join(self._open_texts))
        self._open_texts = []
        return item


def unanswered_outcome(kind: str, id: str, by: ResolvedBy) -> RequestOutcome:
    """The outcome of a request that nobody answered."""
    if kind == "permission":
        return PermissionOutcome(permission_id=id, decision="deny_once", by=by)
    return InputOutcome(input_id=id, action="cancel", by=by)


def with_end(item: Item, status: ItemStatus) -> Item:
    return msgspec.structs.replace(item, status=status, ended_at=now())


def terminal_event(item: Item) -> NewEvent:
    """The one event that ends an item."""
    return NewEvent(_TERMINAL[item.type], {"item": item}, item.turn_id)


def failure_data(failure: Failure) -> StoredError:
    """A failure as the journal stores it; the wire adds the code that belongs to its name."""
    return StoredError(message=failure.message, data=failure.details())


def turn_ended_event(turn_id: str, reason: EndReason, usage: Usage, error: StoredError | None) -> NewEvent:
    data = {"reason": reason, "usage": usage}
    return NewEvent("turn.ended", {**data, "error": error} if error else data, turn_id)


def new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(6)}"
