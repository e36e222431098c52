"""The interface between a chat and an engine: what a turn starts from, where it reports, what an engine can do.

An engine knows neither chats nor the journal. It takes from the `Sink` what the user adds while the turn runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..model.content import Block, EndReason
from ..model.failures import ProviderFailed
from ..providers.base import ModelRequest, Provider, TokenUsage, ToolCall, UserMessage
from ..tools.base import PlanEntry, Tool
from ..tools.toolbox import CallResult, Toolbox

if TYPE_CHECKING:
    from ..tools.shell.runner import Runner


class EngineCapabilities(msgspec.Struct, frozen=True):
    """What an engine does, as far as a chat must know it before a turn starts."""

    calls_provider: bool
    """It sends the requests that the chat assembles to the provider of the chat's model. False for an engine with a
    model and a history of its own: it gets the prompt alone, and needs no provider.
    """
    takes_steers: bool
    """It reads `Sink.take_steers` while a turn runs. Otherwise a prompt that would steer the turn waits in the queue.
    """
    runs_client_calls: bool = False
    """It runs tool calls of the client (`chat/services/direct_calls`) with the built-in tools alone, and without the
    hooks of prompts. No configuration can name it.
    """
    keeps_session: bool = False
    """It is a `SessionEngine`: it has a session of its own with the earlier turns, and gets what that lacks."""
    window: int | None = None
    """Tokens that what it is given of the past must fit into, for one that `keeps_session`."""


class EngineChat(msgspec.Struct, frozen=True):
    """The chat that an engine is opened for."""

    session_id: str
    epoch: str
    """Changes when a deleted chat is created again: an engine resumes its own record of a chat only if both match."""
    project_path: str | None


class TurnLimits(msgspec.Struct, frozen=True):
    """How far a turn may go: requests to the model, seconds, tokens in and out; None is no limit."""

    steps: int
    seconds: float | None = None
    tokens: int | None = None


FitNextStep = Callable[[ModelRequest], Awaitable[ModelRequest]]
Reduce = Callable[[ModelRequest, ProviderFailed, bool], Awaitable[ModelRequest | None]]
RunTool = Callable[[ToolCall], Awaitable[CallResult]]
RunOwnTool = Callable[[Tool, ToolCall], Awaitable[CallResult]]


class ModelCalls(msgspec.Struct, frozen=True):
    """How an engine calls the chat's model: the provider, the first request, and what changes later requests."""

    provider: Provider
    first: ModelRequest
    fit_next_step: FitNextStep | None = None
    """Makes every request but the first fit the context window."""
    reduce: Reduce | None = None
    """Returns the request without what the provider may have refused; None when nothing more can be removed. The last
    argument says whether the same request will not be sent again.
    """


class EngineHost(msgspec.Struct, frozen=True):
    """What an engine with a model and tools of its own gets from the chat."""

    run_own: RunOwnTool
    """Runs a call by a tool of the engine, with hooks, permission, ledger and journal. The call was started in the
    sink; its end is not reported there.
    """
    runner: Callable[[], Awaitable[Runner]]
    """Runs programs as the chat's settings say: in the sandbox, within limits."""
    prompt: list[Block]
    """The prompt as the engine gets it."""
    media: dict[str, bytes] = {}
    """The bytes of the blobs that the prompt names."""
    background: str = ""
    """What precedes the prompt: the turns that the engine's session lacks, rules, open files, patches."""


class TurnRequest(msgspec.Struct, frozen=True):
    """What a turn starts from: the prompt, the tools, the limits, and for most engines the first request."""

    prompt: list[Block]
    """What the user sent, then what hooks added; without the user's part when an unfinished turn is continued."""
    model: str
    """The chosen model, as `provider:model`."""
    effort: str | None
    limits: TurnLimits
    tools: Toolbox
    run_tool: RunTool
    secret: str
    """The chat's secret, from which the markers of fences are derived."""
    calls: ModelCalls | None
    """For an engine that `calls_provider`; None for the others."""
    host: EngineHost | None = None
    """For an engine that `keeps_session`; None for the others."""


class Sink(Protocol):
    """Receives the events of a turn, in order. Awaiting it is the backpressure: a slow disk slows the model down."""

    async def text(self, text: str) -> None: ...
    async def thought(self, text: str) -> None: ...
    async def tool_started(self, call: ToolCall, title: str, kind: str) -> None: ...
    async def tool_ended(self, call: ToolCall, result: CallResult) -> None: ...
    async def tool_changed(self, call: ToolCall, title: str) -> None:
        """Replace the title and the input of a call that has not ended."""

    async def tool_output(self, call: ToolCall, text: str) -> None: ...
    async def plan(self, entries: list[PlanEntry]) -> None: ...
    async def notice(self, code: str, params: dict[str, Any]) -> None: ...
    def set_window(self, used: int, budget: int) -> None:
        """How full the engine's context window is, for the next `step_ended`."""

    async def limit_reached(self, limit: str) -> None: ...
    def stopped(self) -> bool: ...
    async def step_ended(self, usage: TokenUsage) -> None: ...
    async def retrying(self, failure: ProviderFailed, attempt: int, wait: float) -> None: ...
    async def retry_started(self) -> None: ...
    async def before_stop(self, said: str) -> list[UserMessage]: ...
    def take_steers(self) -> list[UserMessage]: ...
    async def wait_for_steers(self) -> None: ...


class Engine(Protocol):
    """Runs the turns of one chat, one at a time.

    A turn is stopped by cancelling `run`; the engine can run the next one afterwards, also after a failure.
    """

    async def open(self, chat: EngineChat) -> None:
        """Prepare for the chat, once before its first turn; raises a Failure that says what is missing."""

    async def run(self, turn: TurnRequest, sink: Sink) -> EndReason:
        """Run a turn to its end; raises a Failure that says why it failed."""

    async def close(self) -> None:
        """End what `open` and `run` have started; called once, while no turn runs."""


class Attached(msgspec.Struct, frozen=True):
    """The engine's session for the next turn. One that was not `resumed` contains nothing of the chat."""

    session: str
    resumed: bool


class SessionEngine(Engine, Protocol):
    """An engine with a session of its own, which outlives the process."""

    async def attach(self, known: str | None, model: str) -> Attached:
        """Attach the engine's session for the next turn: `known` if it can be resumed, else a new one. Raises a Failure
        that says why there is none. It never creates one over an existing session.
        """
