"""A turn while it runs here: its items as they grow, its cancellation, and what the user adds meanwhile."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
import msgspec

from ..model.content import Block, EndReason, Item, Status, Usage
from ..model.events import NewEvent
from ..model.failures import Failure, ProviderFailed
from ..model.figures import cost_of
from ..providers.base import TokenUsage, ToolCall, UserMessage
from ..tools.toolbox import Clerk, Result
from .recorder import Recorder

MAX_PIECE = 16 * 1024
"""Code points of one delta: at four bytes each it still fits the frame's bound for a run."""

MAX_TITLE = 200
"""One line; the rest of a long path stands in the call's input."""

_MARKS = {"completed": "x", "in_progress": "~"}

_TERMINAL = {"message": "message.completed", "thought": "thought.completed", "tool": "tool.ended"}


Looked = Callable[[Item, Result], list[NewEvent]]
"""What else follows from a call that has ended, such as files that it brought into view."""


class RunningTurn:
    """The engine's `Sink`, and what a session knows of a turn that has not ended.

    `clerk_for` gives a call its hands; `looked` tells what a finished call brought into view.
    """

    def __init__(
        self,
        id: str,
        prompt_id: str,
        recorder: Recorder,
        total: Usage,
        clerk_for: Callable[[RunningTurn, ToolCall], Clerk],
        looked: Looked,
    ) -> None:
        self.id = id
        self.prompt_id = prompt_id
        self.usage = Usage()
        self.done = anyio.Event()
        self.end_seq: int | None = None
        self.worked = False
        """Whether a tool was called."""
        self.ending = False
        self._told = anyio.Event()
        self._failure: Failure | None = None
        self._scope = anyio.CancelScope()
        self._reason: EndReason = "cancelled"
        self._recorder = recorder
        self._total = total
        self._steers: list[UserMessage] = []
        self._open: Item | None = None
        self._texts: list[str] = []
        self._tools: dict[str, Item] = {}
        self._clerk_for = clerk_for
        self._looked = looked
        self._requests: dict[str, Literal["permission", "input"]] = {}
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._stopped = False
        self.window: dict[str, int] = {}
        """How full the model's window is: `used` tokens of the `budget`."""
        self.prices: dict[str, float] | None = None
        """What the model's tokens cost, in US dollars a million, where that is known."""
        self.on_usage: Callable[[int], Awaitable[None]] | None = None
        """Is told how many tokens the provider counted in a request."""
        self.on_stop: Callable[[str], Awaitable[list[UserMessage]]] | None = None
        """Is asked whether the model may stop that has said this; what it is told instead keeps it going."""

    @property
    def scope(self) -> anyio.CancelScope:
        return self._scope

    @property
    def cancel_reason(self) -> EndReason:
        return self._reason

    def cancel(self, reason: EndReason) -> None:
        """End the turn now; what it has said so far is kept."""
        if not self._scope.cancel_called:
            self._reason = reason
            self._scope.cancel()

    def stuck(self, failure: Failure) -> None:
        """Its end cannot be committed for now; it is tried again."""
        self._failure = failure
        self._told.set()

    def finish(self) -> None:
        """Its end is committed."""
        self._failure = None
        self.done.set()
        self._told.set()

    async def ended(self) -> None:
        """Wait for the committed end; raises why when the disk does not take it."""
        await self._told.wait()
        if self._failure:
            raise self._failure

    def steer(self, content: list[Block]) -> None:
        self._steers.append(UserMessage(content))

    async def text(self, text: str) -> None:
        await self._grow("message", text)

    async def thought(self, text: str) -> None:
        await self._grow("thought", text)

    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None:
        self.worked = True
        await self._close_open("completed")
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
        self._tools[call.id] = item
        await self._recorder.buffer(NewEvent("tool.started", {"item": item}, self.id))

    async def tool_updated(self, call: ToolCall, item: Item) -> None:
        """The call is about to do what its item now says; committed before it does."""
        self._tools[call.id] = item
        await self._recorder.record(NewEvent("tool.updated", {"item": item}, self.id))

    async def tool_output(self, call: ToolCall, text: str) -> None:
        """A piece of what a tool prints while it runs."""
        item = self._tools.get(call.id)
        for start in range(0, len(text) if item else 0, MAX_PIECE):
            assert item is not None
            await self._recorder.delta("tool.output", self.id, item.id, text[start : start + MAX_PIECE])

    async def tool_ended(self, call: ToolCall, result: Result) -> None:
        outcome = result.outcome
        item = self._tools.pop(call.id)
        output: dict[str, Any] = {"text": outcome.text, "truncated": result.truncated}
        found = {"ref": result.ref, "source": result.source}
        finished = msgspec.structs.replace(
            item,
            status="denied" if outcome.denied else "failed" if outcome.failed else "completed",
            ended_at=now(),
            output=output | {name: value for name, value in found.items() if value},
            locations=[{"path": path} for path in outcome.paths] or None,
            exit_code=outcome.exit_code,
            not_run=outcome.not_run,
        )
        data: dict[str, Any] = {"item": finished}
        if outcome.measured:
            data["measured"] = outcome.measured
        for event in [NewEvent("tool.ended", data, self.id), *self._looked(finished, result)]:
            await self._recorder.buffer(event)

    def clerk(self, call: ToolCall) -> Clerk:
        return self._clerk_for(self, call)

    def item_of(self, call: ToolCall) -> Item:
        return self._tools[call.id]

    def stop(self) -> None:
        """The user has had enough: the turn ends with the call at hand."""
        self._stopped = True

    def stopped(self) -> bool:
        return self._stopped

    async def limit_reached(self, limit: str) -> None:
        await self._recorder.buffer(
            NewEvent("notice", {"code": "limit_reached", "params": {"limit": limit}}, self.id)
        )

    async def record(self, *events: NewEvent) -> None:
        """Commit facts of this turn."""
        await self._recorder.record(*events)

    async def note_permission(self, outcome: dict[str, Any]) -> None:
        """What was allowed without asking: kept with what follows."""
        await self._recorder.buffer(NewEvent("permission.resolved", outcome, self.id))

    async def plan(self, entries: list[dict[str, Any]]) -> None:
        """The model's plan, as one item that is shown anew."""
        at = now()
        item = Item(
            id=f"plan-{self.id}",
            turn_id=self.id,
            type="plan",
            status="completed",
            started_at=at,
            ended_at=at,
            title="Plan",
            text="\n".join(f"- [{_MARKS.get(entry['status'], ' ')}] {entry['content']}" for entry in entries),
            entries=entries,
        )
        await self._recorder.buffer(NewEvent("plan.updated", {"item": item}, self.id))

    async def request_opened(
        self, kind: Literal["permission", "input"], id: str, data: dict[str, Any]
    ) -> None:
        """Somebody is asked; the chat waits."""
        self._requests[id] = kind
        state = NewEvent("chat.state", {"state": "requires_action"})
        await self._recorder.record(NewEvent(f"{kind}.requested", data, self.id), state)

    async def request_closed(
        self, kind: Literal["permission", "input"], id: str, outcome: dict[str, Any]
    ) -> None:
        """It was answered, or ended otherwise; the chat goes on when nothing else waits."""
        del self._requests[id]
        events = [NewEvent(f"{kind}.resolved", outcome, self.id)]
        if not self._requests:
            events.append(NewEvent("chat.state", {"state": "running"}))
        await self._recorder.record(*events)

    @property
    def unanswered(self) -> dict[str, dict[str, Any]]:
        """How requests ended that nobody had answered when the turn did."""
        return self._outcomes

    async def step_ended(self, usage: TokenUsage) -> None:
        await self._close_open("completed")
        step = Usage(input_tokens=usage.input, output_tokens=usage.output, cached_tokens=usage.cached)
        self.usage = self.usage.plus(msgspec.structs.replace(step, cost=cost_of(step, self.prices)))
        data: dict[str, Any] = {"turn": self.usage, "total": self._total.plus(self.usage)}
        if self.window:
            data["window"] = self.window
        if self.on_usage and usage.input:
            await self.on_usage(usage.input)
        await self._recorder.buffer(NewEvent("usage.updated", data, self.id))

    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None:
        """The model failed before it said anything, and is asked again in `wait` seconds."""
        retry_at = now() + int(wait * 1000)
        data = {"error": described(failure), "willRetry": True, "attempt": attempt, "retryAt": retry_at}
        await self._recorder.buffer(NewEvent("error", data, self.id))
        await self._recorder.buffer(NewEvent("chat.state", {"state": "retrying"}))

    async def asking_again(self) -> None:
        await self._recorder.buffer(NewEvent("chat.state", {"state": "running"}))

    async def note(self, event: str, data: dict[str, Any]) -> None:
        """Something worth telling about the request that is about to be made."""
        await self._recorder.hold(NewEvent(event, data, self.id))

    async def stopping(self, said: str) -> list[UserMessage]:
        return await self.on_stop(said) if self.on_stop else []

    def take_steers(self) -> list[UserMessage]:
        """What the user added since the last request; when nothing, the turn may end and takes no more."""
        steers, self._steers = self._steers, []
        return steers

    def closing_events(self, status: Status) -> list[NewEvent]:
        """The ends of all requests and items that have none yet."""
        by = "restart" if status == "interrupted" else "cancel"
        self._outcomes = {id: unanswered(kind, id, by) for id, kind in self._requests.items()}
        requests = [
            NewEvent(f"{kind}.resolved", self._outcomes[id], self.id) for id, kind in self._requests.items()
        ]
        items = [self._finished(status)] if self._open else []
        items += [ended(item, status) for item in self._tools.values()]
        self._open, self._tools, self._requests = None, {}, {}
        return requests + [terminal_event(item) for item in items]

    async def _grow(self, type: str, text: str) -> None:
        if not text:
            return
        if self._open is None or self._open.type != type:
            await self._close_open("completed")
            self._open = Item(id=new_id("i"), turn_id=self.id, type=type, status="running", started_at=now())
            await self._recorder.buffer(NewEvent(f"{type}.started", {"item": self._open}, self.id))
        for start in range(0, len(text), MAX_PIECE):
            piece = text[start : start + MAX_PIECE]
            self._recorder.check()
            self._texts.append(piece)
            await self._recorder.delta(f"{type}.delta", self.id, self._open.id, piece)

    async def _close_open(self, status: Status) -> None:
        if self._open:
            event = terminal_event(self._finished(status))
            self._open = None
            await self._recorder.buffer(event)

    def _finished(self, status: Status) -> Item:
        assert self._open is not None
        item = msgspec.structs.replace(ended(self._open, status), text="".join(self._texts))
        self._texts = []
        return item


def unanswered(kind: str, id: str, by: str) -> dict[str, Any]:
    """How a request ends that nobody answered."""
    outcome = {"decision": "deny_once"} if kind == "permission" else {"action": "cancel"}
    return {f"{kind}Id": id, **outcome, "by": by}


def ended(item: Item, status: Status) -> Item:
    return msgspec.structs.replace(item, status=status, ended_at=now())


def terminal_event(item: Item) -> NewEvent:
    """The one event that ends an item."""
    return NewEvent(_TERMINAL[item.type], {"item": item}, item.turn_id)


def described(failure: Failure) -> dict[str, Any]:
    """A failure as the journal keeps it; the wire adds the code that belongs to its name."""
    return {"message": failure.message, "data": failure.details()}


def turn_ended(turn_id: str, reason: EndReason, usage: Usage, error: dict[str, Any] | None) -> NewEvent:
    data = {"reason": reason, "usage": usage}
    return NewEvent("turn.ended", {**data, "error": error} if error else data, turn_id)


def new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(6)}"


def now() -> int:
    return time.time_ns() // 1_000_000
