"""Keeps a chat inside its context window: masks old tool output, then replaces the oldest turns by a summary.

Nothing is lost: a compaction is a row that refers to turns, which stay in the journal, searchable and readable.
Undoing it sends them again. A failure changes nothing and is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import anyio
import anyio.to_thread
import msgspec

from ...context.summary import Summary, extract, fit_summary, parse_summary, render_summary, summary_request
from ...model.content import Block, SentBlock, Turn
from ...model.events import NewEvent
from ...model.failures import Failure, Refused
from ...providers.base import ModelRequest, Provider, ReplyPart, TextDelta, UserMessage
from ...store.tables.compactions import StoredCompaction
from ...system.clock import now
from ...text.token_estimate import FEWEST_BYTES_PER_TOKEN
from ..journal.running_turn import failure_data, new_id
from ..request.build import BuiltRequest
from ..request.file_versions import file_copies_text, known_versions, without_files
from ..request.messages import turn_messages
from ..request.token_meter import TokenMeter
from . import file_copies
from .chat import CompactableChat
from .file_copies import FileCopy
from .hooks import ask_hooks

logger = logging.getLogger(__name__)

SUMMARY_SHARE = 0.12
MAX_SUMMARY = 4000
"""Tokens of a summary: enough for the goal, decisions and files of a long task."""

SUMMARY_TIMEOUT_S = 90.0
"""A summary by the model that takes longer is replaced by extraction."""

PAGE_TURNS, PAGE_BYTES = 200, 1024 * 1024
"""Turns that are read at once, so that reads of other chats come in between."""

MAX_PAGES = 64
"""Pages that are read for a compaction: at most 12,800 turns, and 64 MiB unless turns are very long."""

Trigger = Literal["background", "blocking", "manual"]
RecordEvent = Callable[[NewEvent], Awaitable[None]]


class CompactionPlan(msgspec.Struct, frozen=True):
    """What a compaction would do: the turns that the summary would replace, and up to where outputs are masked."""

    oldest: list[Turn]
    masked: str | None
    before: int
    after: int
    previous: StoredCompaction | None
    files: Sequence[FileCopy] = ()
    """Copies of the open files, which replace those that came with turns up to `newest`."""
    newest: str | None = None


class CompactionBudget(msgspec.Struct, frozen=True):
    """The limits of a compaction: the model's budget and token meter, the tokens that are not the chat's (`fixed`),
    and the model that may summarise.
    """

    meter: TokenMeter
    total: int
    fixed: int
    provider: Provider | None
    model: str


def compaction_budget(built: BuiltRequest, provider: Provider, model: str) -> CompactionBudget:
    """The compaction budget of a chat with this newest request."""
    kinds = ("system", "tools", "rules", "attachments", "prompt")
    fixed = sum(block.tokens for block in built.manifest.blocks if block.kind in kinds and block.is_sent)
    # Scripted providers would spend a scripted reply on the summary.
    able = provider if provider.reads_history else None
    return CompactionBudget(built.meter, built.budget.total, fixed, able, model)


async def plan_compaction(
    chat: CompactableChat, budget: CompactionBudget, *, force: bool
) -> CompactionPlan | None:
    """Plan what is worth doing now; None when there is nothing old enough."""
    previous = await chat.store.compactions.current(chat.chat.id)
    floor = previous.summarised_ordinal if previous else 0
    turns, texts = await _read_turns(chat, floor)
    settings = chat.environment.settings
    old, new = (
        turns[: -settings.values.compaction.keep_turns],
        turns[-settings.values.compaction.keep_turns :],
    )
    if not old:
        return None
    gathered = previous.files if previous else []
    bare = without_files(turns, previous.gathered, previous.masked) if previous else 0
    texts |= await chat.store.blobs.texts([kept.ref for kept in gathered if kept.ref])
    known = known_versions(gathered, turns[bare:])
    files = await file_copies.collect_copies(chat.store, chat.environment, budget.meter, budget.total, known)

    secret = chat.chat.epoch

    def work() -> CompactionPlan | None:
        past = next((at for at, turn in enumerate(turns) if previous and turn.id == previous.masked), -1)
        count = budget.meter.count
        sent = [
            budget.meter.messages(turn_messages(turn, texts if at >= bare else {}, secret, masked=at <= past))
            for at, turn in enumerate(turns)
        ]
        short = [
            budget.meter.messages(turn_messages(turn, {}, secret, masked=at < len(old)))
            for at, turn in enumerate(turns)
        ]
        space = _max_summary_tokens(budget)
        summary = count(_summary_text(previous)) if previous else 0
        before = sum(sent) + summary + count(file_copies_text(gathered, texts))
        masked = sum(short) + summary + sum(count(one.text) for one in files)
        wanted = max(space, int(budget.total * settings.values.compaction.target) - budget.fixed - space)
        # Cutting long outputs is enough: the cheapest step, and it loses no words of the conversation.
        if masked <= wanted and masked < before and not force:
            return CompactionPlan([], old[-1].id, before, masked - summary, previous, files, turns[-1].id)
        gone = _turns_to_drop(short[: len(old)], masked, wanted, force)
        if not gone and masked >= before:
            return None  # what fills the window is not a turn
        after = masked - sum(short[:gone]) - summary
        return CompactionPlan(old[:gone], old[-1].id, before, after, previous, files, turns[-1].id)

    plan = await anyio.to_thread.run_sync(work)
    assert new or plan is None or plan.oldest
    return plan


async def _read_turns(chat: CompactableChat, floor: int) -> tuple[list[Turn], dict[str, str]]:
    """The newest ended turns after the ordinal `floor`, oldest first, and the texts of their attachments."""
    pages: list[list[Turn]] = []
    texts: dict[str, str] = {}
    before: str | None = None
    while len(pages) < MAX_PAGES:
        page, found = await chat.store.turns.recent(chat.chat.id, before, floor, PAGE_TURNS, PAGE_BYTES)
        pages.append([turn for turn in page.turns if turn.status != "running"])
        texts |= found
        before = page.before
        if before is None or not page.turns:
            break
    return [turn for page in reversed(pages) for turn in page], texts


def _turns_to_drop(short: Sequence[int], masked: int, wanted: int, force: bool) -> int:
    """How many of the oldest turns must be replaced so that the rest is small enough."""
    left, count = masked, 0
    for tokens in short:
        if left <= wanted and not (force and count == 0):
            break
        left -= tokens
        count += 1
    return count


async def compact(
    chat: CompactableChat,
    budget: CompactionBudget,
    trigger: Trigger,
    instructions: str | None = None,
    record: RecordEvent | None = None,
) -> str | None:
    """Run a compaction, journalled from its start to its end; its id, or None when there is nothing to do.

    `record` journals within a running turn. Without it, each event takes the chat's lock, and the lease is held from
    start to end, so that a crash in between is detected.
    """
    if record is not None:
        return await _run_compaction(chat, budget, trigger, instructions, record)
    # A loop: of several that wait, one goes first when the running one ends.
    while chat.compacting:
        if trigger == "background":
            return None
        await chat.compaction_ended.wait()
    chat.compacting, chat.compaction_ended = True, anyio.Event()
    try:
        return await _run_compaction(chat, budget, trigger, instructions, partial(_record, chat))
    finally:
        chat.compacting = False
        chat.compaction_ended.set()
        with anyio.CancelScope(shield=True):
            # Shielded: a lease that stays would keep other processes out of the chat until it expires.
            await chat.release_lease_if_idle()


async def _run_compaction(
    chat: CompactableChat,
    budget: CompactionBudget,
    trigger: Trigger,
    instructions: str | None,
    record: RecordEvent,
) -> str | None:
    plan = await plan_compaction(chat, budget, force=trigger == "manual")
    if plan is None:
        return None
    if chat.environment.has_hooks():
        hooked = await ask_hooks(chat, trigger, instructions, record)
        if hooked is None:
            return None
        instructions = hooked or None
    # Before the turns leave the context: afterwards the model could not say what it was doing.
    await chat.resume_snapshots.take_snapshot("compaction")
    id = new_id("co")
    began = {"compactionId": id, "trigger": trigger, "tokensBefore": plan.before}
    await record(NewEvent("compaction.started", began))
    started = now()
    try:
        summary = await _summarise(plan, budget, instructions)
    # Also when cancelled: a started compaction without an end would look like a crash.
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            item = _compaction_item(id, started, trigger, plan, None, "failed")
            failure = failure_data(error) if isinstance(error, Failure) else None
            ended = {**began, "item": {**item, "error": failure} if failure else item}
            await record(NewEvent("compaction.ended", ended))
        raise
    chat.environment.compaction_ended()
    with anyio.CancelScope(shield=True):
        files = await file_copies.store_copies(chat.store, plan.files)
        await record(_ended_event(id, started, trigger, plan, summary, budget, files))
    return id


async def undo_compaction(chat: CompactableChat) -> str:
    """Undo the newest compaction, so that its turns are sent again."""
    current = await chat.store.compactions.current(chat.chat.id)
    if current is None:
        raise Refused("not_found", "This chat has no compaction to undo")
    await _record(chat, NewEvent("compaction.undone", {"compactionId": current.id}))
    return current.id


async def _summarise(
    plan: CompactionPlan, budget: CompactionBudget, instructions: str | None
) -> Summary | None:
    """The summary of all turns up to the newest that is replaced: by the model, else by extraction."""
    previous = plan.previous.summary if plan.previous else None
    before = msgspec.convert(previous, Summary) if previous else None
    if not plan.oldest:
        return before
    most = _max_summary_tokens(budget)
    found = await _model_summary(before, plan.oldest, budget, instructions, most) if budget.provider else None
    if found is None:
        found = await anyio.to_thread.run_sync(extract, before, plan.oldest, budget.meter.count, most)
    return await anyio.to_thread.run_sync(fit_summary, found, budget.meter.count, most)


async def _model_summary(
    before: Summary | None,
    turns: Sequence[Turn],
    budget: CompactionBudget,
    instructions: str | None,
    most: int,
) -> Summary | None:
    """A summary of the turns by the model; None when it fails, takes too long or returns nothing usable."""
    assert budget.provider is not None
    ask = partial(
        summary_request, before, turns, instructions, most, max_bytes=budget.total * FEWEST_BYTES_PER_TOKEN
    )
    text = await anyio.to_thread.run_sync(ask)
    # The byte limit is a guess; a request that is too long would only cost a failed call.
    if await anyio.to_thread.run_sync(budget.meter.count, text) > budget.total:
        return None
    pieces: list[str] = []

    async def take(chunk: ReplyPart) -> None:
        if isinstance(chunk, TextDelta):
            pieces.append(chunk.text)

    ask_hooks = ModelRequest(budget.model, [UserMessage([Block(type="text", text=text)])])
    try:
        with anyio.move_on_after(SUMMARY_TIMEOUT_S):
            await budget.provider.stream(ask_hooks, take)
            return await anyio.to_thread.run_sync(parse_summary, "".join(pieces), before, turns)
    except Failure as failure:
        logger.info("no summary from the model", extra={"error": failure.message})
    return None


def _max_summary_tokens(budget: CompactionBudget) -> int:
    return min(MAX_SUMMARY, max(200, int(budget.total * SUMMARY_SHARE)))


def _summary_text(compaction: StoredCompaction) -> str:
    return render_summary(msgspec.convert(compaction.summary, Summary)) if compaction.summary else ""


def _ended_event(
    id: str,
    started: int,
    trigger: Trigger,
    plan: CompactionPlan,
    summary: Summary | None,
    budget: CompactionBudget,
    files: list[SentBlock],
) -> NewEvent:
    summarised = plan.oldest[-1].id if plan.oldest else plan.previous.summarised if plan.previous else None
    summary_text = render_summary(summary) if summary else ""
    after = plan.after + (budget.meter.count(summary_text) if summary_text else 0)
    data = {
        "compactionId": id,
        "trigger": trigger,
        "tokensBefore": plan.before,
        "tokensAfter": after,
        "summarised": summarised,
        "masked": plan.masked,
        "turns": len(plan.oldest),
        "files": msgspec.to_builtins(files),
        "gathered": plan.newest,
        "item": _compaction_item(id, started, trigger, plan, summary_text, "completed", after),
    }
    if summary:
        data["state"] = msgspec.to_builtins(summary)
    return NewEvent("compaction.ended", data)


def _compaction_item(
    id: str,
    started: int,
    trigger: Trigger,
    plan: CompactionPlan,
    summary_text: str | None,
    status: str,
    after: int | None = None,
) -> Mapping[str, object]:
    """The compaction as an item that an app can show."""
    ends = (plan.oldest[0].id, plan.oldest[-1].id) if plan.oldest else (None, plan.masked)
    item = {
        "id": id,
        "turnId": plan.masked or "",
        "type": "compaction",
        "status": status,
        "startedAt": started,
        "endedAt": now(),
        "title": "Compacted" if status == "completed" else "Not compacted",
        "text": summary_text or None,
        "compactionId": id,
        "trigger": trigger,
        "fromTurn": ends[0],
        "toTurn": ends[1],
        "tokensBefore": plan.before,
        "tokensAfter": after,
        "summary": summary_text or None,
        "undoable": status == "completed",
    }
    return {key: value for key, value in item.items() if value is not None}


async def _record(chat: CompactableChat, event: NewEvent) -> None:
    async def make() -> tuple[None, list[NewEvent]]:
        return None, [event]

    await chat.apply(make)
