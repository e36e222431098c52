"""Previews the request of a chat and its compaction, on request and without a prompt."""

from __future__ import annotations

from ...context.materials import Manifest
from ...model.chats import Prompt, PromptOverrides
from ...model.content import Block
from ..compaction import compactor
from ..request import build
from ..request.build import BuiltRequest
from ..request.named_blocks import check_block_names
from ..sessions.session import Session


async def preview_manifest(
    session: Session, content: list[Block], overrides: PromptOverrides, budget: int | None
) -> Manifest:
    """The manifest of the request that a prompt would make; nothing is sent or changed."""
    if overrides.context:
        await check_block_names(session.store, session.environment, overrides.context)
    return (await _build_request(session, content, overrides, budget)).manifest


async def plan_compaction(session: Session) -> compactor.CompactionPlan | None:
    """What a compaction on request would do now; None when nothing is old enough."""
    return await compactor.plan_compaction(session, await _compaction_budget(session), force=True)


async def compact_chat(session: Session, instructions: str | None) -> str | None:
    return await compactor.compact(session, await _compaction_budget(session), "manual", instructions)


async def postpone_compaction(session: Session, turns: int) -> None:
    """Do not compact the chat for so many turns, unless its window is full."""
    wanted = dict(session.chat.config.get("compaction") or {})
    await session.configure({"compaction": {**wanted, "postponedUntil": session.chat.turns + turns}})


async def _compaction_budget(session: Session) -> compactor.CompactionBudget:
    built = await _build_request(session, [Block(type="text", text=" ")], PromptOverrides(), None)
    provider, name = await session.turn_runner.resolve(session.config.model)
    return compactor.compaction_budget(built, provider, name)


async def _build_request(
    session: Session, content: list[Block], overrides: PromptOverrides, budget: int | None
) -> BuiltRequest:
    turn_runner, config = session.turn_runner, session.config
    provider, name = await turn_runner.resolve(await turn_runner.model(overrides.model or config.model))
    prompt = Prompt("", "", content, "queue", overrides)
    tools = await session.environment.toolbox()
    spec = await turn_runner.spec(provider, name, config, prompt, "", tools, budget, preview=True)
    return await build.build_request(
        session.store, session.environment, session.chat, spec, session.resume_snapshots
    )
