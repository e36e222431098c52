"""What a turn asks the model: everything that it needs and that fits its window, assembled under one budget.

Reads what could be sent (history, files, changes, rules, the past), lets `context/assembly` decide, and spells the
request. The parts that do not change come first, so that a provider's prompt cache keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio.to_thread
import msgspec

from ..context import budget as budgets
from ..context.assembly import LAST_TURNS, MESSAGE_TOKENS, assemble
from ..context.budget import Budget, Caps, Wanted
from ..context.fences import stub
from ..context.gates import Switches
from ..context.materials import Assembly, Materials
from ..context.materials import Block as Row
from ..context.tokens.counting import is_loaded, load
from ..context.tokens.families import family_of
from ..model.chats import Chat
from ..model.content import Block, Kept, Turn
from ..model.failures import Failure, ProviderFailed
from ..providers.base import Message, ModelRequest, UserMessage
from ..store.compactions import Compaction
from ..store.store import Store
from ..workspace.paths import Workspace
from .continuity import SNAPSHOT, Continuity, Due
from .copies import GATHERED
from .desk import Desk
from .gathered import RECENT_TURNS, Gathered, without_project
from .materials import Asked, Collecting, History
from .measuring import BYTES_A_TOKEN, Measure, measure_for, rough_count
from .messages import as_sent, attachment_text, plain

SMALL = 4000
"""Tokens that fit every window: below this a model's window need not be asked for, nor its tokens counted."""

WAITING_SHARE = 4
"""A chat that takes no more than a quarter of its window by a rough count fits it by any."""

FIRST_PAGE_TURNS = 25
PAGE_TURNS = 200
PAGE_BYTES = 1024 * 1024
"""History is read in pages, each twice as long as the one before, until the window is full: most windows of a
long chat are full after few turns, and reading more would only make the first word late."""

MAX_MEDIA_BYTES = 20 * 1024 * 1024
"""Of images and audio in one request, the newest first; providers take little more."""


HOOKS_SHARE = 0.15
"""Of the budget, for what hooks add to a prompt."""


class Question(msgspec.Struct, frozen=True):
    """A turn's first request, how it was measured, what of it stays with the turn, and whether its model's window
    matters and nobody knows it."""

    request: ModelRequest
    manifest: dict[str, Any]
    kept: list[Kept]
    window_is_missed: bool
    measure: Measure
    budget: Budget
    prompt: list[Block]
    along: bool
    """Whether context stands before the prompt in its message."""
    fill: float
    """What all of the chat would take, as a share of the budget; 1 or more when not all of it fits."""


async def question(store: Store, desk: Desk, chat: Chat, asked: Asked, continuity: Continuity) -> Question:
    """The request, and its manifest; raises when system, rules and prompt alone do not fit."""
    return await _Asking(store, desk, chat, asked, continuity).run()


class _Asking:
    def __init__(self, store: Store, desk: Desk, chat: Chat, asked: Asked, continuity: Continuity) -> None:
        self._store = store
        self._continuity = continuity
        self._desk = desk
        self._chat = chat
        self._asked = asked
        self._secret = chat.epoch
        self._due: Due | None = None

    async def run(self) -> Question:
        asked = self._asked
        compaction, restored = await self._store.snapshots.before_a_request(self._chat.id)
        window, is_missed, small = await self._window()
        small = small and restored is None and not asked.preview
        measure = await self._measure(small or await self._can_wait(window, compaction))
        budget = self._budget(window, measure)
        asked = self._asked = _without_overlong(asked, budget, measure)
        history = await self._history(budget, measure, compaction)
        wanted = _wanted(asked.config.get("budgets") or {}, self._desk.settings.max_rule_tokens)
        caps = budgets.caps(budget.total, wanted)
        # What goes on with an earlier turn has no message that a snapshot could stand in: the next prompt has.
        self._due = self._continuity.due(compaction, restored) if asked.prompt else None
        gathered, materials, made = await self._assembled(history, budget, caps, measure)
        if gathered.relies_on - _sent(made):
            # A file that is needed came with a turn that no longer fits: so files are sent as if for the first time.
            history = history.without_files
            gathered, materials, made = await self._assembled(history, budget, caps, measure)
        if made.needed:
            raise _too_large(made.needed, budget)
        kept = await self._kept(made, gathered, measure)
        request = await self._request(made, history, budget, window, measure)
        manifest = self._manifest(made, budget, measure)
        if asked.prompt and not asked.preview:
            self._continuity.asked(asked.turn_id, compaction, self._due)
        fill = _fill(materials, made, budget, measure, history.unread)
        along = bool(kept) and bool(asked.prompt)
        return Question(
            request, manifest, kept, is_missed, measure, budget, [*asked.prompt, *asked.added], along, fill
        )

    async def _assembled(
        self, history: History, budget: Budget, caps: Caps, measure: Measure
    ) -> tuple[Gathered, Materials, Assembly]:
        gathered = await self._gather(history, measure, caps.per_file)
        collecting = Collecting(self._store, self._desk, self._chat, self._asked, measure)
        materials = await collecting.run(history, gathered, budget, caps, self._due)
        made = await anyio.to_thread.run_sync(assemble, materials, budget, caps, measure.count)
        return gathered, materials, made

    def _budget(self, window: int | None, measure: Measure) -> Budget:
        reserve = self._asked.config.get("outputReserve")
        made = budgets.budget(window or budgets.ASSUMED_WINDOW, reserve, exact=measure.exact)
        asked = self._asked
        if asked.budget is None:
            return made
        attached = sum(measure.count(attachment_text(block)) for block in asked.attached)
        prompt = measure.count(asked.said) + MESSAGE_TOKENS + attached + measure.media(asked.attached)
        return Budget(made.window, made.reserve, min(made.total, asked.budget + prompt))

    async def _measure(self, rough_is_enough: bool) -> Measure:
        """Exact counts when they matter; an upper estimate while everything fits many times over."""
        factor = await self._store.calibration(self._asked.name)
        measure = measure_for(self._asked.model, factor, rough_is_enough=rough_is_enough)
        if not measure.rough:
            await anyio.to_thread.run_sync(load, measure.family)
        return measure

    async def _can_wait(self, window: int | None, compaction: Compaction | None) -> bool:
        """Whether the table of tokens is better loaded later: it holds up the whole process, and a model is answering
        in another chat; an estimate does as long as this one takes a small part of its window."""
        others = self._desk.workshop.answered - {self._asked.turn_id}
        if not others or is_loaded(family_of(self._asked.model)):
            return False
        room = budgets.budget(window or budgets.ASSUMED_WINDOW, None).total * BYTES_A_TOKEN // WAITING_SHARE
        room -= len(self._asked.text.encode(errors="replace"))
        floor = compaction.summarised_ordinal if compaction else 0
        page, _ = await self._store.recent_turns(self._chat.id, None, floor, PAGE_TURNS, max(1, room))
        if page.before is not None and await self._older(page.before, floor):
            return False
        return sum(len(msgspec.json.encode(turn)) for turn in page.turns) <= room

    async def _window(self) -> tuple[int | None, bool, bool]:
        """The model's window: the chat's word, what is known, or what the provider says when it matters; whether it
        matters and nobody knows it; and whether the whole chat is small."""
        asked = self._asked
        chosen: int | None = asked.config.get("window")
        known = chosen or asked.provider.known(asked.model).window
        small = await self._is_small() and (known is None or known >= 4 * SMALL)
        if known is not None or asked.window_is_asked or small:
            return known, known is None and not small, small
        with suppress(ProviderFailed):
            await asked.provider.models()
        known = asked.provider.known(asked.model).window
        return known, known is None, small

    async def _is_small(self) -> bool:
        """Whether the prompt and the whole chat before it fit every window."""
        said = rough_count(self._asked.text + self._asked.told_by_hooks) + rough_count(
            msgspec.json.encode(self._asked.tools).decode()
        )
        if said > SMALL or self._chat.open_files:
            return False
        _, page = await self._store.history(self._chat.id, limit=FIRST_PAGE_TURNS, max_bytes=4 * SMALL)
        ended = [turn for turn in page.turns if turn.id != self._asked.turn_id]
        size = sum(rough_count(plain(as_sent(turn, {}, masked=False))) + 16 for turn in ended)
        return page.before is None and said + size <= SMALL

    async def _history(self, budget: Budget, measure: Measure, compaction: Compaction | None) -> History:
        """The newest turns, read until they would fill the window."""
        floor = compaction.summarised_ordinal if compaction else 0
        turns: list[Turn] = []
        texts: dict[str, str] = {}
        before: str | None = None
        limit, room = FIRST_PAGE_TURNS, budget.total
        while True:
            page, found = await self._store.recent_turns(self._chat.id, before, floor, limit, PAGE_BYTES)
            limit = min(2 * limit, PAGE_TURNS)
            ended = [turn for turn in page.turns if turn.id != self._asked.turn_id]
            texts |= found
            turns = ended + turns
            room -= sum(rough_count(plain(as_sent(turn, texts, masked=False))) // 2 for turn in ended)
            before = page.before
            if not page.turns or before is None or room < 0:
                break
        older = before is not None and bool(page.turns) and await self._older(before, floor)
        files = compaction.files if compaction else []
        texts |= await self._store.texts([kept.ref for kept in files if kept.ref])
        return History(turns, texts, older, compaction, files)

    async def _older(self, before: str, floor: int) -> bool:
        page, _ = await self._store.recent_turns(self._chat.id, before, floor, 1, 1)
        return bool(page.turns)

    async def _gather(self, history: History, measure: Measure, most: int) -> Gathered:
        switches = _switches(self._asked.config.get("gates"), self._asked.context)
        past = history.more or len(history.turns) > LAST_TURNS
        workspace = self._workspace()
        if workspace is None:
            return without_project(self._asked.text, switches, past)
        # It brings along diffs, git and the ledger: a chat without a project does not wait for those.
        from .gathering import Gatherer

        return await Gatherer(
            self._store,
            self._desk,
            measure,
            self._asked.text,
            switches,
            history.turns[-RECENT_TURNS:],
            past,
            history.known,
            history.texts,
            most,
        ).run(workspace)

    def _workspace(self) -> Workspace | None:
        try:
            return self._desk.workspace()
        except Failure:
            return None  # the project is gone: its blocks are too

    async def _kept(self, made: Assembly, gathered: Gathered, measure: Measure) -> list[Kept]:
        """What of this request stays in the history: files as they were sent, a line for all else."""
        kept: list[Kept] = []
        texts: list[bytes] = []
        for block in made.blocks:
            found = gathered.opened.get(block.id)
            if block.included == "dropped" or not _in_tail(block) or block.id in ("files", GATHERED):
                continue
            if found:
                texts += [block.text.encode(errors="replace"), found.data]
                base = gathered.bases.get(block.id)
                kept.append(Kept(label=block.label, path=found.path, hash=found.hash, base=base))
            else:
                kept.append(Kept(label=block.label, stub=stub(block.label, block.tokens)))
        if texts and not self._asked.preview:
            infos = iter(await self._store.put_blobs(texts, "text/plain; charset=utf-8"))
            kept = [
                msgspec.structs.replace(one, ref=next(infos).id, source=next(infos).id) if one.path else one
                for one in kept
            ]
        return kept

    async def _request(
        self, made: Assembly, history: History, budget: Budget, window: int | None, measure: Measure
    ) -> ModelRequest:
        asked = self._asked
        blocks = {block.id: block for block in made.blocks if block.included != "dropped"}
        messages: list[Message] = []
        top = [Block(type="text", text=blocks[id].text) for id in TOP if id in blocks]
        if top:
            messages.append(UserMessage(top))
        messages += self._said(made, history)
        tail = [
            block.text
            for block in made.blocks
            if _in_tail(block) and block.id != GATHERED and block.included != "dropped" and block.text
        ]
        if asked.prompt:
            along = [Block(type="text", text="\n\n".join(tail))] if tail else []
            messages.append(UserMessage([*along, *asked.prompt, *asked.added]))
        elif asked.added:
            messages.append(UserMessage(asked.added))
        elif not messages:
            raise _too_large(budget.total + 1, budget)
        return ModelRequest(
            model=asked.model,
            messages=messages,
            effort=asked.effort,
            instructions="\n\n".join(blocks[id].text for id in _INSTRUCTIONS if id in blocks) or None,
            tools=[tool for tool in asked.tools if tool.name in made.tools],
            media=await _media(self._store, messages),
            window=window,
            room=budget.window - made.used,
            max_output=asked.config.get("outputReserve"),
            cache_key=self._chat.key.session_id.rpartition("-")[2],
        )

    def _said(self, made: Assembly, history: History) -> list[Message]:
        wanted = set(made.turns)
        up_to = history.compaction.masked if history.compaction else None
        places = {turn.id: place for place, turn in enumerate(history.turns)}
        last_masked = places.get(up_to or "", -1)
        messages: list[Message] = []
        bare = history.bare
        for place, turn in enumerate(history.turns):
            if turn.id in made.cut_turns:
                messages += made.cut_turns[turn.id]
            elif turn.id in wanted:
                texts = history.texts if place >= bare else {}
                messages += as_sent(turn, texts, masked=place <= last_masked)
        return messages

    def _manifest(self, made: Assembly, budget: Budget, measure: Measure) -> dict[str, Any]:
        """What is sent, by the contract's section 7."""
        return {
            "model": self._asked.name,
            "window": budget.window,
            "reserve": budget.reserve,
            "budget": budget.total,
            "used": made.used,
            "exact": measure.exact,
            "blocks": [
                {
                    "id": block.id,
                    "kind": block.kind,
                    "label": block.label,
                    "tokens": block.tokens,
                    "included": block.included,
                    "gate": block.gate,
                    "text": block.text,
                }
                for block in made.blocks
            ],
        }


_TAIL = ("openFiles", "patches", "gitDiff", "retrieval")
"""Kinds of blocks that stand before the prompt, in its own message."""


def _in_tail(block: Row) -> bool:
    return block.kind in _TAIL or block.id == SNAPSHOT


TOP = ("summary", GATHERED)
"""Blocks that stand before the chat, in a message of their own."""

_FIXED = ("system", "tools", "rules", "summary", "attachments", "prompt")
"""What is sent whatever the chat has to say."""

_INSTRUCTIONS = ("system", "rules", "standing")


def without_text(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as it is told: figures and gates, not the texts."""
    blocks = [{key: value for key, value in block.items() if key != "text"} for block in manifest["blocks"]]
    return {**manifest, "blocks": blocks}


def _without_overlong(asked: Asked, budget: Budget, measure: Measure) -> Asked:
    """Without what hooks add where a small window has no room for it: a prompt must not fail by it."""
    tokens = measure.count(asked.told_by_hooks)
    if tokens <= budget.total * HOOKS_SHARE:
        return asked
    words = f"[What hooks added is left out: {tokens} tokens, more than there is room for]"
    return msgspec.structs.replace(asked, added=[Block(type="text", text=words)])


def _switches(configured: dict[str, Any] | None, prompt: dict[str, Any]) -> Switches:
    names = ("openFiles", "patches", "gitDiff", "retrieval")
    given = {name: prompt[name] for name in names if prompt.get(name)}
    return msgspec.convert({**(configured or {}), **given}, Switches)


def _wanted(configured: dict[str, Any], rules: int) -> Wanted:
    given = {key: value for key, value in configured.items() if value}
    return msgspec.convert({**given, "rules": rules}, Wanted)


def _fill(materials: Materials, made: Assembly, budget: Budget, measure: Measure, unread: bool) -> float:
    said = sum(turn.tokens for turn in materials.turns)
    sent = [block for block in made.blocks if block.included != "dropped" and block.id != SNAPSHOT]
    others = sum(block.tokens for block in sent if block.kind in _FIXED or block.id == GATHERED)
    share = (said + others) / max(1, budget.total)
    return max(1.0, share) if unread else share


def _sent(made: Assembly) -> set[str]:
    return {*made.turns, *(block.id for block in made.blocks if block.included != "dropped")}


async def _media(store: Store, messages: Sequence[Message]) -> dict[str, bytes]:
    """The bytes of what the messages show, the newest first, as far as a request can hold them."""
    media: dict[str, bytes] = {}
    left = MAX_MEDIA_BYTES
    blocks = [block for message in messages if isinstance(message, UserMessage) for block in message.content]
    for block in reversed(blocks):
        size = block.size or 0
        if block.blob_id and block.blob_id not in media and block.type in ("image", "audio") and size <= left:
            _, media[block.blob_id] = await store.read_blob(block.blob_id, 0, size)
            left -= size
    return media


def _too_large(needed: int, budget: Budget) -> Failure:
    return Failure(
        "context_budget",
        f"The prompt needs about {needed} tokens and the model's window has room for {budget.total}",
        action="edit_prompt",
        hint="Shorten the prompt, or choose a model with a larger window",
        facts={"needed": needed, "available": budget.total},
    )
