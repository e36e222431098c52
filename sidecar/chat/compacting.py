"""Keeps a chat inside its model's window: masks old tool output, then lets a summary stand for the oldest turns.

Nothing is lost: a compaction is a row that stands for turns, which stay in the journal, searchable and readable, and
undoing it brings them back. A failure leaves everything as it was, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal

import anyio
import anyio.to_thread
import msgspec

from ..context.summary import Summary, extract, fitted, parsed, rendered, request
from ..model.content import Block, Kept, Turn
from ..model.events import NewEvent
from ..model.failures import Failure, Refused
from ..providers.base import Chunk, ModelRequest, Provider, TextDelta, UserMessage
from ..store.compactions import Compaction
from . import regathering
from .asking import Question
from .copies import copies, gathered_text, without_files
from .measuring import Measure
from .messages import as_sent
from .regathering import Gathered
from .running import described, new_id, now
from .session import Session

logger = logging.getLogger(__name__)

SUMMARY_SHARE = 0.12
MAX_SUMMARY = 4000
"""Tokens of a summary: enough for the goal, decisions and files of a long task."""

ASK_S = 90.0
"""A model that takes longer to summarise is done without."""

BYTES_A_TOKEN = 2
"""Of the turns that a model is asked to summarise: they must fit its window with what is asked of them."""

ALL_TURNS = 10_000
ALL_BYTES = 64 * 1024 * 1024

Trigger = Literal["background", "blocking", "manual"]
Record = Callable[[NewEvent], Awaitable[None]]


class Plan(msgspec.Struct, frozen=True):
    """What a compaction would do: the turns that a summary would stand for, and up to where outputs are masked."""

    oldest: list[Turn]
    masked: str | None
    before: int
    after: int
    previous: Compaction | None
    files: Sequence[Gathered] = ()
    """Copies of the open files, which stand for those that came with turns up to `newest`."""
    newest: str | None = None


class Scale(msgspec.Struct, frozen=True):
    """What a compaction is measured by: the model's budget and its tokens, what of it is not the chat's (`fixed`), and
    who may summarise."""

    measure: Measure
    total: int
    fixed: int
    provider: Provider | None
    model: str


def scale_of(question: Question, provider: Provider, model: str) -> Scale:
    """By what a chat is compacted whose newest request was this."""
    kinds = ("system", "tools", "rules", "attachments", "prompt")
    fixed = sum(
        block["tokens"]
        for block in question.manifest["blocks"]
        if block["kind"] in kinds and block["included"] != "dropped"
    )
    able = provider if provider.reads_history else None
    return Scale(question.measure, question.budget.total, fixed, able, model)


async def plan(session: Session, scale: Scale, *, force: bool) -> Plan | None:
    """What is worth doing now; None when there is nothing old enough."""
    previous = await session.store.compaction(session.chat.id)
    floor = previous.summarised_ordinal if previous else 0
    page, texts = await session.store.recent_turns(session.chat.id, None, floor, ALL_TURNS, ALL_BYTES)
    turns = [turn for turn in page.turns if turn.status != "running"]
    settings = session.desk.settings
    old, new = turns[: -settings.keep_turns], turns[-settings.keep_turns :]
    if not old:
        return None
    gathered = previous.files if previous else []
    bare = without_files(turns, previous.gathered, previous.masked) if previous else 0
    texts |= await session.store.texts([kept.ref for kept in gathered if kept.ref])
    known = copies(gathered, turns[bare:])
    files = await regathering.gather(session.store, session.desk, scale.measure, scale.total, known)

    def work() -> Plan | None:
        past = next((at for at, turn in enumerate(turns) if previous and turn.id == previous.masked), -1)
        count = scale.measure.count
        sent = [
            scale.measure.messages(as_sent(turn, texts if at >= bare else {}, masked=at <= past))
            for at, turn in enumerate(turns)
        ]
        short = [
            scale.measure.messages(as_sent(turn, {}, masked=at < len(old))) for at, turn in enumerate(turns)
        ]
        room = _summary_room(scale)
        summary = count(_drawn(previous)) if previous else 0
        before = sum(sent) + summary + count(gathered_text(gathered, texts))
        masked = sum(short) + summary + sum(count(one.text) for one in files)
        wanted = max(room, int(scale.total * settings.compaction_target) - scale.fixed - room)
        if masked <= wanted and masked < before and not force:
            return Plan([], old[-1].id, before, masked - summary, previous, files, turns[-1].id)
        gone = _oldest(short[: len(old)], masked, wanted, force)
        if not gone and masked >= before:
            return None  # what fills the window is no turn
        after = masked - sum(short[:gone]) - summary
        return Plan(old[:gone], old[-1].id, before, after, previous, files, turns[-1].id)

    made = await anyio.to_thread.run_sync(work)
    assert new or made is None or made.oldest
    return made


def _oldest(short: Sequence[int], masked: int, wanted: int, force: bool) -> int:
    """How many of the oldest turns must go so that the rest is small enough."""
    left, count = masked, 0
    for tokens in short:
        if left <= wanted and not (force and count == 0):
            break
        left -= tokens
        count += 1
    return count


async def compact(
    session: Session,
    scale: Scale,
    trigger: Trigger,
    instructions: str | None = None,
    record: Record | None = None,
) -> str | None:
    """Carry a compaction out, journalled from its start to its end; its id, or None when there is nothing to do.

    `record` journals within a turn that runs; without it the chat's lock is taken for each event, and its lease is
    held from the start to the end, so that a death between the two is noticed.
    """
    if record is not None:
        return await _carry_out(session, scale, trigger, instructions, record)
    while session.compacting:
        if trigger == "background":
            return None
        await session.compacted.wait()
    session.compacting, session.compacted = True, anyio.Event()
    try:
        return await _carry_out(session, scale, trigger, instructions, partial(_record, session))
    finally:
        session.compacting = False
        session.compacted.set()
        with anyio.CancelScope(shield=True):
            await session.let_go()


async def _carry_out(
    session: Session, scale: Scale, trigger: Trigger, instructions: str | None, keep: Record
) -> str | None:
    made = await plan(session, scale, force=trigger == "manual")
    if made is None:
        return None
    if session.desk.has_hooks():
        from .hook_compactions import asked

        hooked = await asked(session, trigger, instructions, keep)
        if hooked is None:
            return None
        instructions = hooked or None
    await session.continuity.keep("compaction")
    id = new_id("co")
    began = {"compactionId": id, "trigger": trigger, "tokensBefore": made.before}
    await keep(NewEvent("compaction.started", began))
    started = now()
    try:
        summary = await _summarised(made, scale, instructions)
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            item = _item(id, started, trigger, made, None, "failed")
            failure = described(error) if isinstance(error, Failure) else None
            ended = {**began, "item": {**item, "error": failure} if failure else item}
            await keep(NewEvent("compaction.ended", ended))
        raise
    session.desk.compacted()
    with anyio.CancelScope(shield=True):
        files = await regathering.keep(session.store, made.files)
        await keep(_ended(id, started, trigger, made, summary, scale, files))
    return id


async def undo(session: Session) -> str:
    """Let the turns that a compaction stands for be sent again."""
    current = await session.store.compaction(session.chat.id)
    if current is None:
        raise Refused("not_found", "This chat has no compaction to undo")
    await _record(session, NewEvent("compaction.undone", {"compactionId": current.id}))
    return current.id


async def _summarised(made: Plan, scale: Scale, instructions: str | None) -> Summary | None:
    """The summary that stands for all turns up to the newest that goes: by the model, else by extraction."""
    previous = made.previous.summary if made.previous else None
    before = msgspec.convert(previous, Summary) if previous else None
    if not made.oldest:
        return before
    most = _summary_room(scale)
    found = await _by_model(before, made.oldest, scale, instructions, most) if scale.provider else None
    if found is None:
        found = await anyio.to_thread.run_sync(extract, before, made.oldest, scale.measure.count, most)
    return fitted(found, scale.measure.count, most)


async def _by_model(
    before: Summary | None, turns: Sequence[Turn], scale: Scale, instructions: str | None, most: int
) -> Summary | None:
    """What the model makes of the turns; None when it fails, takes too long or says nothing usable."""
    assert scale.provider is not None
    text = request(before, turns, instructions, most, max_bytes=scale.total * BYTES_A_TOKEN)
    if scale.measure.count(text) > scale.total:
        return None
    pieces: list[str] = []

    async def take(chunk: Chunk) -> None:
        if isinstance(chunk, TextDelta):
            pieces.append(chunk.text)

    asked = ModelRequest(scale.model, [UserMessage([Block(type="text", text=text)])])
    try:
        with anyio.move_on_after(ASK_S):
            await scale.provider.stream(asked, take)
            return parsed("".join(pieces), before, turns)
    except Failure as failure:
        logger.info("no summary from the model", extra={"error": failure.message})
    return None


def _summary_room(scale: Scale) -> int:
    return min(MAX_SUMMARY, max(200, int(scale.total * SUMMARY_SHARE)))


def _drawn(compaction: Compaction) -> str:
    return rendered(msgspec.convert(compaction.summary, Summary)) if compaction.summary else ""


def _ended(
    id: str,
    started: int,
    trigger: Trigger,
    made: Plan,
    summary: Summary | None,
    scale: Scale,
    files: list[Kept],
) -> NewEvent:
    summarised = made.oldest[-1].id if made.oldest else made.previous.summarised if made.previous else None
    drawn = rendered(summary) if summary else ""
    after = made.after + (scale.measure.count(drawn) if drawn else 0)
    data: dict[str, Any] = {
        "compactionId": id,
        "trigger": trigger,
        "tokensBefore": made.before,
        "tokensAfter": after,
        "summarised": summarised,
        "masked": made.masked,
        "turns": len(made.oldest),
        "files": msgspec.to_builtins(files),
        "gathered": made.newest,
        "item": _item(id, started, trigger, made, drawn, "completed", after),
    }
    if summary:
        data["state"] = msgspec.to_builtins(summary)
    return NewEvent("compaction.ended", data)


def _item(
    id: str,
    started: int,
    trigger: Trigger,
    made: Plan,
    drawn: str | None,
    status: str,
    after: int | None = None,
) -> dict[str, Any]:
    """The compaction as an item that an app can show."""
    ends = (made.oldest[0].id, made.oldest[-1].id) if made.oldest else (None, made.masked)
    item = {
        "id": id,
        "turnId": made.masked or "",
        "type": "compaction",
        "status": status,
        "startedAt": started,
        "endedAt": now(),
        "title": "Compacted" if status == "completed" else "Not compacted",
        "text": drawn or None,
        "compactionId": id,
        "trigger": trigger,
        "fromTurn": ends[0],
        "toTurn": ends[1],
        "tokensBefore": made.before,
        "tokensAfter": after,
        "summary": drawn or None,
        "undoable": status == "completed",
    }
    return {key: value for key, value in item.items() if value is not None}


async def _record(session: Session, event: NewEvent) -> None:
    async def make() -> tuple[None, list[NewEvent]]:
        return None, [event]

    await session.apply(make)
