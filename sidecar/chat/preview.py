"""What a chat would send, and what a compaction would do, at a person's wish and without a prompt."""

from __future__ import annotations

from typing import Any

from ..model.chats import Prompt
from ..model.content import Block
from . import asking, compacting
from .asking import Question
from .session import Session


async def manifest(
    session: Session, content: list[Block], overrides: dict[str, Any], budget: int | None
) -> dict[str, Any]:
    """The manifest of the request that a prompt would make; nothing is sent, and nothing changes."""
    return (await _question(session, content, overrides, budget)).manifest


async def planned(session: Session) -> compacting.Plan | None:
    """What a compaction by hand would do now; None when nothing is old enough."""
    return await compacting.plan(session, await _scale(session), force=True)


async def compact(session: Session, instructions: str | None) -> str | None:
    return await compacting.compact(session, await _scale(session), "manual", instructions)


async def postpone(session: Session, turns: int) -> None:
    """Leave the chat alone for so many turns, unless its window is full."""
    wanted = dict(session.chat.config.get("compaction") or {})
    await session.configure({"compaction": {**wanted, "postponedUntil": session.chat.turns + turns}})


async def _scale(session: Session) -> compacting.Scale:
    question = await _question(session, [Block(type="text", text=" ")], {}, None)
    provider, name = await session.answering.resolve(str(session.config["model"]))
    return compacting.scale_of(question, provider, name)


async def _question(
    session: Session, content: list[Block], overrides: dict[str, Any], budget: int | None
) -> Question:
    answering, config = session.answering, session.config
    provider, name = await answering.resolve(
        await answering.model(str(overrides.get("model") or config["model"]))
    )
    prompt = Prompt("", "", content, "queue", overrides)
    tools = await session.desk.toolbox()
    asked = await answering.asked(provider, name, config, prompt, "", tools, budget, preview=True)
    return await asking.question(session.store, session.desk, session.chat, asked, session.continuity)
