"""What an engine with a session of its own gets with a prompt: the turns that its session lacks, rules, open files.

The same assembly as for a model decides, within the engine's window, and the manifest records it. Does not know how
the engine is reached.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NoReturn, cast

import anyio
import msgspec

from ...context.fences import fence_text
from ...context.materials import Manifest
from ...engines.base import Engine, EngineHost, SessionEngine
from ...engines.registry import EngineEntry
from ...model.chats import Chat, ContextSwitches, EffectiveConfig, Prompt
from ...model.content import Block
from ...model.failures import Failure
from ...providers.base import (
    AssistantMessage,
    Completion,
    Emit,
    Message,
    ModelEntry,
    ModelRequest,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ...store.tables.engine_sessions import EngineSessionRow
from ...tools.base import Tool
from ...tools.toolbox import CallResult, Toolbox
from ..journal.running_turn import RunningTurn
from ..tool_calls import run_tool_call
from ..tool_calls.environment import ToolEnvironment
from .build import BuiltRequest, build_request
from .candidates import RequestSpec
from .media import Showing
from .resume import ResumeSnapshots

logger = logging.getLogger(__name__)

CONTINUE = "Go on with the answer that was interrupted."
"""The prompt for an unfinished turn: what was said of it is in the engine's session, or in the history."""

HISTORY = "this chat so far, with another assistant or an earlier session"

_IN_SESSION = "in-history"
"""The gate of instructions that the engine has been given with an earlier prompt."""

_INSTRUCTIONS = ("system", "rules", "standing")


class EngineModel:
    """An engine in the place of a model, for the assembly: its name and its window."""

    reads_history = True
    retries = 0

    def __init__(self, engine: str, window: int | None) -> None:
        self._engine = engine
        self._window = window

    async def stream(self, request: ModelRequest, emit: Emit) -> Completion:
        self._refuse()

    async def warm(self, model: str) -> None:
        return

    async def models(self) -> list[ModelEntry]:
        return []

    def model_entry(self, model: str) -> ModelEntry:
        provider, _, name = self._engine.rpartition(":")
        return ModelEntry(
            id=self._engine,
            name=self._engine,
            provider=provider or name,
            window=self._window,
            modalities=("text", "image", "audio"),
        )

    def offline_entries(self, reason: str) -> list[ModelEntry]:
        return []

    def _refuse(self) -> NoReturn:
        raise ValueError("an engine is not asked as a model")


class EngineBackground:
    """Prepares one turn. `given` has, by session, the instructions that the engine was given."""

    def __init__(
        self,
        environment: ToolEnvironment,
        turn: RunningTurn,
        showing: Showing,
        resume_snapshots: ResumeSnapshots,
        given: dict[str, str],
    ) -> None:
        self._environment = environment
        self._store = environment.services.store
        self._turn = turn
        self._showing = showing
        self._resume_snapshots = resume_snapshots
        self._given = given
        self._session = ""

    async def prepare(
        self,
        entry: EngineEntry,
        engine: Engine,
        chat: Chat,
        config: EffectiveConfig,
        prompt: Prompt,
        added: Sequence[Block],
    ) -> EngineHost:
        """Attach the engine's session, and assemble what it lacks."""
        known = await self._store.engine_sessions.find(chat.id, entry.name)
        attached = await cast("SessionEngine", engine).attach(known.session if known else None, config.model)
        content = prompt.content or [Block(type="text", text=CONTINUE)]
        after = known.turn if known and attached.resumed else None
        built = await self._assemble(entry, chat, config, prompt, content, added, after)
        session = self._session = attached.session
        background = await self._record(session, built)
        return EngineHost(
            run_own=partial(self._run_own),
            runner=self._environment.runner,
            prompt=_own_blocks(built),
            media=built.request.media,
            background=background,
        )

    async def note_answered(self, entry: EngineEntry) -> None:
        """Record that the session contains this turn. Not for one that failed: the engine may not have got it, and
        what is given twice is not lost.
        """
        row = EngineSessionRow(self._session, self._turn.id)
        with anyio.CancelScope(shield=True):
            await self._store.engine_sessions.put(self._environment.chat.id, entry.name, row)

    def note_answered_soon(self, entry: EngineEntry) -> anyio.Event:
        """The same in the background, since the end of the turn need not wait for it. Returns what is set then."""
        done = anyio.Event()

        async def note() -> None:
            try:
                await self.note_answered(entry)
            except Failure as failure:
                logger.warning("the session of an engine was not recorded", extra={"error": failure.message})
            finally:
                done.set()

        self._environment.services.tasks.start_soon(note)
        return done

    async def _assemble(
        self,
        entry: EngineEntry,
        chat: Chat,
        config: EffectiveConfig,
        prompt: Prompt,
        content: list[Block],
        added: Sequence[Block],
        after: str | None,
    ) -> BuiltRequest:
        model = EngineModel(entry.name, entry.capabilities.window)
        blocks, left_out = await self._showing.blocks(content, model.model_entry(""), self._turn.id)
        spec = RequestSpec(
            provider=model,
            showing=self._showing,
            model=entry.name,
            config=config,
            effort=None,
            turn_id=self._turn.id,
            prompt=blocks,
            left_out=left_out,
            added=list(added),
            window_was_asked=True,
            context=prompt.overrides.context or ContextSwitches(),
            after=after,
        )
        return await build_request(self._store, self._environment, chat, spec, self._resume_snapshots)

    async def _record(self, session: str, built: BuiltRequest) -> str:
        """Record the manifest, and return what precedes the prompt."""
        manifest, request = built.manifest, built.request
        instructions = request.instructions or ""
        if self._given.get(session) == instructions:
            manifest, instructions = _without_instructions(manifest), ""
        else:
            self._given[session] = instructions
        self._turn.window = {"used": manifest.used, "budget": built.budget.total}
        await self._turn.note_request(msgspec.structs.replace(manifest, model=request.model, kept=built.kept))
        *past, last = request.messages
        assert isinstance(last, UserMessage)
        before = "\n\n".join(block.text or "" for block in last.content[: -len(built.prompt)])
        history = fence_text(built.secret, "history", HISTORY, transcript(past)) if past else ""
        return "\n\n".join(part for part in (instructions, history, before) if part)

    async def _run_own(self, tool: Tool, call: ToolCall) -> CallResult:
        named = ToolCall(call.id, tool.spec.name, call.input)
        return await run_tool_call.run_tool_call(self._environment, self._turn, Toolbox([tool]), named)


def transcript(messages: Sequence[Message]) -> str:
    """Messages as text: who said what, and which tools returned what."""
    parts: list[str] = []
    for message in messages:
        match message:
            case UserMessage():
                parts.append(f"User: {_plain(message.content)}")
            case AssistantMessage(text, calls):
                parts += [f"Assistant: {text}"] if text else []
                parts += [
                    f"Tool call: {call.name} {msgspec.json.encode(call.input).decode()}" for call in calls
                ]
            case ToolResult(_, text):
                parts.append(f"Tool result: {message.said if message.said is not None else text}")
    return "\n\n".join(parts)


def _plain(blocks: Sequence[Block]) -> str:
    return "\n".join(text for block in blocks if (text := block.text or block.uri or block.name))


def _own_blocks(built: BuiltRequest) -> list[Block]:
    """The prompt with what hooks added, without the context that precedes it."""
    last = built.request.messages[-1]
    assert isinstance(last, UserMessage)
    return last.content[-len(built.prompt) :]


def _without_instructions(manifest: Manifest) -> Manifest:
    """The manifest of a prompt whose instructions the session has already."""
    saved = sum(block.tokens for block in manifest.blocks if block.id in _INSTRUCTIONS and block.is_sent)
    blocks = [
        msgspec.structs.replace(block, included="dropped", gate=_IN_SESSION, text="")
        if block.id in _INSTRUCTIONS and block.is_sent
        else block
        for block in manifest.blocks
    ]
    return msgspec.structs.replace(manifest, used=manifest.used - saved, blocks=blocks)
