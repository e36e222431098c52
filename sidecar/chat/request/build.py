"""Builds a turn's first request to the model: everything that is relevant and fits the context window.

Collects the candidates (history, files, patches, rules, retrieval), lets `context/assembly` decide within one budget,
and writes the request. Parts that do not change come first, so that a provider's prompt cache holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from ...context import budget as budgets
from ...context.assembly import LAST_TURNS, MESSAGE_TOKENS, assemble
from ...context.block_names import GIT_DIFF, OPEN_FILES, PATCHES, RETRIEVAL, included_kinds
from ...context.budget import Budget, Caps, ConfiguredCaps
from ...context.fences import fence_stub
from ...context.materials import Assembly, Candidates, Manifest, ManifestBlock
from ...model.chats import Budgets, Chat, ContextSwitches, GateSwitch, GateSwitches
from ...model.content import Block, SentBlock, Turn
from ...model.failures import Failure, ProviderFailed
from ...providers.base import Message, ModelRequest, UserMessage
from ...store.store import Store
from ...store.tables.compactions import StoredCompaction
from ...system.lazy import lazy_module
from ...text.token_estimate import estimate_tokens
from ...workspace.paths import Workspace
from ..tool_calls.environment import ToolEnvironment
from .candidates import CandidateCollector, ChatHistory, RequestSpec, TrustedRules
from .file_versions import FILE_COPIES
from .media import LeftOut
from .messages import attachment_text, plain_text, turn_messages
from .project_context import RECENT_TURNS, ProjectContext, without_project
from .resume import SNAPSHOT, DueSnapshot, ResumeSnapshots
from .token_meter import TokenMeter, meter_for

if TYPE_CHECKING:
    from . import project as project_blocks
else:
    project_blocks = lazy_module("sidecar.chat.request.project")

SMALL_TOKENS = 4000
"""Tokens that fit every context window: below this, neither the window's size nor an exact count is needed."""

FIRST_PAGE_TURNS = 25
PAGE_TURNS = 200
PAGE_BYTES = 1024 * 1024
"""History is read in pages, each twice as long as the one before, until the window is full: most windows of a long
chat are full after few turns, and reading more would only delay the first token.
"""

HOOKS_SHARE = 0.15
"""The share of the budget for what hooks add to a prompt."""


class BuiltRequest(msgspec.Struct, frozen=True):
    """A turn's first request, its measurements, and the blocks that stay with the turn. Also records whether the size
    of the context window matters and is unknown.
    """

    request: ModelRequest
    manifest: Manifest
    kept: list[SentBlock]
    window_is_unknown: bool
    meter: TokenMeter
    budget: Budget
    prompt: list[Block]
    secret: str
    """The chat's secret, for fences."""
    has_context: bool
    """Whether the prompt's message has context before the prompt."""
    fill: float
    """The size of the whole chat as a share of the budget; 1 or more when not all of it fits."""
    left_out: list[LeftOut]
    """Media that the model does not get."""
    was_taken: bool
    """Whether this model has answered with the earlier turns before: then a refusal is about what is new."""
    trusted_rules: TrustedRules | None = None
    """None when the request has no rules of a trusted project."""


async def build_request(
    store: Store,
    environment: ToolEnvironment,
    chat: Chat,
    spec: RequestSpec,
    resume_snapshots: ResumeSnapshots,
) -> BuiltRequest:
    """Build the request and its manifest; raises when system prompt, rules and prompt alone do not fit."""
    return await _RequestBuilder(store, environment, chat, spec, resume_snapshots).run()


class _RequestBuilder:
    def __init__(
        self,
        store: Store,
        environment: ToolEnvironment,
        chat: Chat,
        spec: RequestSpec,
        resume_snapshots: ResumeSnapshots,
    ) -> None:
        self._store = store
        self._resume_snapshots = resume_snapshots
        self._environment = environment
        self._chat = chat
        self._spec = spec
        self._secret = chat.epoch
        self._due_snapshot: DueSnapshot | None = None
        self._trusted_rules: TrustedRules | None = None

    async def run(self) -> BuiltRequest:
        spec = self._spec
        compaction, restored = await self._store.snapshots.before_a_request(self._chat.id)
        window, is_missed, small = await self._window()
        small = small and restored is None and not spec.preview
        meter = await self._token_meter(small)
        # In a thread: counting the tokens of a long text blocks for a good part of a second.
        budget = await anyio.to_thread.run_sync(self._budget, window, meter)
        # Before the history is read: what hooks add counts against the budget.
        spec = self._spec = await anyio.to_thread.run_sync(_without_long_hook_text, spec, budget, meter)
        history = await self._history(budget, meter, compaction)
        wanted = _wanted_caps(spec.config.budgets, self._environment.settings.values.context.rules)
        caps = budgets.caps(budget.total, wanted)
        # A continued turn has no message that could carry a snapshot; the next prompt has one.
        self._due_snapshot = (
            self._resume_snapshots.due_snapshot(compaction, restored)
            if spec.prompt and spec.after is None
            else None
        )
        project, candidates, assembly = await self._assemble(history, budget, caps, meter)
        if project.needed_turns - _sent_ids(assembly) - history.ids_held:
            # A needed file came with a turn that no longer fits: assemble again, with all files sent again.
            history = history.without_files
            project, candidates, assembly = await self._assemble(history, budget, caps, meter)
        if assembly.needed:
            raise _too_large(assembly.needed, budget)
        kept = await self._history_blocks(assembly, project, meter)
        request = await self._request(assembly, history, budget, window, meter)
        manifest = self._manifest(assembly, budget, meter)
        if spec.prompt and not spec.preview:
            self._resume_snapshots.note_request(spec.turn_id, compaction, self._due_snapshot)
        fill = _fill_share(candidates, assembly, budget, meter, history.has_unread)
        has_context = bool(kept) and bool(spec.prompt)
        return BuiltRequest(
            request=request,
            manifest=manifest,
            kept=kept,
            window_is_unknown=is_missed,
            meter=meter,
            budget=budget,
            prompt=[*spec.prompt, *spec.added],
            secret=self._secret,
            has_context=has_context,
            fill=fill,
            left_out=[*history.left_out, *spec.left_out],
            was_taken=_was_taken(history, spec),
            trusted_rules=self._trusted_rules,
        )

    async def _assemble(
        self, history: ChatHistory, budget: Budget, caps: Caps, meter: TokenMeter
    ) -> tuple[ProjectContext, Candidates, Assembly]:
        project = await self._collect_project(history, meter, caps.per_file)
        collecting = CandidateCollector(self._store, self._environment, self._chat, self._spec, meter)
        candidates = await collecting.run(history, project, budget, caps, self._due_snapshot)
        self._trusted_rules = collecting.trusted_rules
        assembly = await anyio.to_thread.run_sync(assemble, candidates, budget, caps, meter.count)
        return project, candidates, assembly

    def _budget(self, window: int | None, meter: TokenMeter) -> Budget:
        reserve = self._spec.config.output_reserve
        assembly = budgets.budget(window or budgets.ASSUMED_WINDOW, reserve, exact=meter.exact)
        spec = self._spec
        if spec.budget is None:
            return assembly
        attached = sum(meter.count(attachment_text(block)) for block in spec.attached)
        prompt = meter.count(spec.prompt_text) + MESSAGE_TOKENS + attached + meter.media(spec.attached)
        return Budget(assembly.window, assembly.reserve, min(assembly.total, spec.budget + prompt))

    async def _token_meter(self, rough_is_enough: bool) -> TokenMeter:
        """Count exactly when it matters; use an upper estimate while everything fits many times over."""
        factor = await self._store.compactions.calibration(self._spec.name)
        return meter_for(self._spec.model, factor, rough_is_enough=rough_is_enough)

    async def _window(self) -> tuple[int | None, bool, bool]:
        """The model's context window: from the chat's configuration, from what is known, or from the provider when it
        matters. Also whether it matters and is unknown, and whether the whole chat is small.
        """
        spec = self._spec
        entry = spec.provider.model_entry(spec.model)
        chosen = min(filter(None, (spec.config.window, entry.named_window)), default=None)
        known = chosen or entry.window
        small = await self._is_small() and (known is None or known >= 4 * SMALL_TOKENS)
        if known is not None or spec.window_was_asked or small:
            return known, known is None and not small, small
        with suppress(ProviderFailed):
            # It also learns the windows; a failure is reported when the request is sent.
            await spec.provider.models()
        known = spec.provider.model_entry(spec.model).window
        return known, known is None, small

    async def _is_small(self) -> bool:
        """Whether the prompt and the whole chat before it fit every window."""
        said_tokens = estimate_tokens(self._spec.text + self._spec.hook_text) + estimate_tokens(
            msgspec.json.encode(self._spec.tools).decode()
        )
        if said_tokens > SMALL_TOKENS or self._chat.open_files:
            return False
        page, _ = await self._store.turns.recent(self._chat.id, None, 0, FIRST_PAGE_TURNS, 4 * SMALL_TOKENS)
        ended = [turn for turn in page.turns if turn.id != self._spec.turn_id]
        size = sum(
            estimate_tokens(plain_text(turn_messages(turn, {}, self._secret, masked=False))) + 16
            for turn in ended
        )
        return page.before is None and said_tokens + size <= SMALL_TOKENS

    async def _history(
        self, budget: Budget, meter: TokenMeter, compaction: StoredCompaction | None
    ) -> ChatHistory:
        """Read the newest turns until they would fill the window."""
        floor = compaction.summarised_ordinal if compaction else 0
        turns: list[Turn] = []
        texts: dict[str, str] = {}
        before: str | None = None
        limit, space = FIRST_PAGE_TURNS, budget.total
        while True:
            page, found = await self._store.turns.recent(self._chat.id, before, floor, limit, PAGE_BYTES)
            # Most chats fit the first page, which is small; the pages grow, so that a long chat takes few
            # reads.
            limit = min(2 * limit, PAGE_TURNS)
            ended = [turn for turn in page.turns if turn.id != self._spec.turn_id]
            texts |= found
            turns = _since_alone(ended) + turns
            space -= sum(
                estimate_tokens(plain_text(turn_messages(turn, texts, self._secret, masked=False))) // 2
                for turn in ended
            )
            # Half of an upper estimate was subtracted: turns that turn out not to fit are dropped later,
            # while turns that were not read would leave the window half empty.
            before = page.before
            if not page.turns or before is None or space < 0 or _is_cut(turns):
                break
            if self._spec.after is not None and any(turn.id == self._spec.after for turn in ended):
                break
        held, turns = _split_after(turns, self._spec.after)
        turns, left_out = await self._spec.showing.turns(turns, self._spec.entry)
        if held:
            return ChatHistory(turns, texts, False, None, left_out=left_out, held=held)
        if _is_cut(turns):
            return ChatHistory(turns, texts, False, None, left_out=left_out)
        older = before is not None and bool(page.turns) and await self._has_older(before, floor)
        files = compaction.files if compaction else []
        texts |= await self._store.blobs.texts([kept.ref for kept in files if kept.ref])
        return ChatHistory(turns, texts, older, compaction, files, left_out)

    async def _has_older(self, before: str, floor: int) -> bool:
        page, _ = await self._store.turns.recent(self._chat.id, before, floor, 1, 1)
        return bool(page.turns)

    async def _collect_project(self, history: ChatHistory, meter: TokenMeter, most: int) -> ProjectContext:
        switches = _switches(self._spec.config.gates, self._spec.context)
        past = history.has_more or len(history.turns) > LAST_TURNS
        workspace = self._workspace()
        if workspace is None:
            return without_project(self._spec.text, switches, past)
        return await project_blocks.ProjectCollector(
            self._store,
            self._environment,
            meter,
            self._spec.text,
            switches,
            [*history.held, *history.turns][-RECENT_TURNS:],
            past,
            history.known,
            history.texts,
            most,
        ).run(workspace)

    def _workspace(self) -> Workspace | None:
        try:
            return self._environment.workspace()
        except Failure:
            return None  # the project is gone, so it adds no blocks

    async def _history_blocks(
        self, assembly: Assembly, project: ProjectContext, meter: TokenMeter
    ) -> list[SentBlock]:
        """The blocks of this request that stay in the history: files as they were sent, a line for everything else."""
        kept: list[SentBlock] = []
        texts: list[bytes] = []
        for block in assembly.blocks:
            found = project.opened.get(block.id)
            if block.included == "dropped" or not precedes_prompt(block) or block.id == "files":
                continue
            if found:
                texts += [block.text.encode(errors="replace"), found.data]
                base = project.diff_bases.get(block.id)
                kept.append(SentBlock(label=block.label, path=found.path, hash=found.hash, base=base))
            else:
                kept.append(SentBlock(label=block.label, stub=fence_stub(block.label, block.tokens)))
        if texts and not self._spec.preview:
            infos = iter(await self._store.blobs.put_all(texts, "text/plain; charset=utf-8"))
            kept = [
                msgspec.structs.replace(one, ref=next(infos).id, source=next(infos).id) if one.path else one
                for one in kept
            ]
        return kept

    async def _request(
        self, assembly: Assembly, history: ChatHistory, budget: Budget, window: int | None, meter: TokenMeter
    ) -> ModelRequest:
        spec = self._spec
        blocks = {block.id: block for block in assembly.blocks if block.is_sent}
        messages: list[Message] = []
        top = [Block(type="text", text=blocks[id].text) for id in HEAD_BLOCKS if id in blocks]
        if top:
            messages.append(UserMessage(top))
        messages += self._history_messages(assembly, history)
        tail = [
            block.text for block in assembly.blocks if precedes_prompt(block) and block.is_sent and block.text
        ]
        if spec.prompt:
            has_context = [Block(type="text", text="\n\n".join(tail))] if tail else []
            messages.append(UserMessage([*has_context, *spec.prompt, *spec.added]))
        elif spec.added:
            messages.append(UserMessage(spec.added))
        elif not messages:
            raise _too_large(budget.total + 1, budget)
        return ModelRequest(
            model=spec.model,
            messages=messages,
            effort=spec.effort,
            instructions="\n\n".join(blocks[id].text for id in _INSTRUCTION_BLOCKS if id in blocks) or None,
            tools=[tool for tool in spec.tools if tool.name in assembly.tools],
            media=await spec.showing.bytes_of(messages),
            window=window,
            answer_space=budget.window - assembly.used,
            max_output=spec.config.output_reserve,
            cache_key=self._chat.key.session_id.rpartition("-")[2],
        )

    def _history_messages(self, assembly: Assembly, history: ChatHistory) -> list[Message]:
        wanted = set(assembly.turns)
        up_to = history.compaction.masked if history.compaction else None
        positions = {turn.id: position for position, turn in enumerate(history.turns)}
        last_masked = positions.get(up_to or "", -1)
        messages: list[Message] = []
        turns_without_copies = history.turns_without_copies
        for position, turn in enumerate(history.turns):
            if turn.id in assembly.cut_turns:
                messages += assembly.cut_turns[turn.id]
            elif turn.id in wanted:
                texts = history.texts if position >= turns_without_copies else {}
                messages += turn_messages(turn, texts, self._secret, masked=position <= last_masked)
        return messages

    def _manifest(self, assembly: Assembly, budget: Budget, meter: TokenMeter) -> Manifest:
        return Manifest(
            model=self._spec.name,
            window=budget.window,
            reserve=budget.reserve,
            budget=budget.total,
            used=assembly.used,
            exact=meter.exact,
            blocks=assembly.blocks,
        )


_TAIL_KINDS = ("openFiles", "patches", "gitDiff", "retrieval")
"""Kinds of blocks that come before the prompt, in its message."""


def precedes_prompt(block: ManifestBlock) -> bool:
    """Whether the block, if it is sent, comes before the prompt in the prompt's message."""
    return (block.kind in _TAIL_KINDS and block.id != FILE_COPIES) or block.id == SNAPSHOT


HEAD_BLOCKS = ("summary", FILE_COPIES)
"""Blocks that come before the history, in a message of their own."""

_FIXED_KINDS = ("system", "tools", "rules", "summary", "attachments", "prompt")
"""Kinds of blocks that are sent whatever the chat contains."""

_INSTRUCTION_BLOCKS = ("system", "rules", "standing")


def _without_long_hook_text(spec: RequestSpec, budget: Budget, meter: TokenMeter) -> RequestSpec:
    """Drop the text of hooks that a small window cannot hold: a prompt must not fail because of it."""
    tokens = meter.count(spec.hook_text)
    if tokens <= budget.total * HOOKS_SHARE:
        return spec
    words = f"[What hooks added is left out: {tokens} tokens, too many for the context window]"
    return msgspec.structs.replace(spec, added=[Block(type="text", text=words)])


def _switches(configured: GateSwitches, prompt: ContextSwitches) -> GateSwitches:
    """The prompt's switches, where it has set them; else those of the chat. What the prompt includes is opened."""
    included = included_kinds(prompt.include)

    def chosen(kind: str, of_prompt: GateSwitch, of_chat: GateSwitch) -> GateSwitch:
        if kind in included:
            return "always"
        return of_chat if of_prompt == "auto" else of_prompt

    return GateSwitches(
        open_files=chosen(OPEN_FILES, prompt.open_files, configured.open_files),
        patches=chosen(PATCHES, prompt.patches, configured.patches),
        git_diff=chosen(GIT_DIFF, prompt.git_diff, configured.git_diff),
        retrieval=chosen(RETRIEVAL, prompt.retrieval, configured.retrieval),
    )


def _wanted_caps(configured: Budgets, rules: int) -> ConfiguredCaps:
    given = {name: value for name, value in msgspec.structs.asdict(configured).items() if value}
    return ConfiguredCaps(**given, rules=rules)


def _fill_share(
    candidates: Candidates, assembly: Assembly, budget: Budget, meter: TokenMeter, has_unread: bool
) -> float:
    said_tokens = sum(turn.tokens for turn in candidates.turns)
    sent = [block for block in assembly.blocks if block.is_sent and block.id != SNAPSHOT]
    others = sum(block.tokens for block in sent if block.kind in _FIXED_KINDS or block.id == FILE_COPIES)
    share = (said_tokens + others) / max(1, budget.total)
    return max(1.0, share) if has_unread else share


def _sent_ids(assembly: Assembly) -> set[str]:
    return {*assembly.turns, *(block.id for block in assembly.blocks if block.is_sent)}


def _since_alone(turns: Sequence[Turn]) -> list[Turn]:
    """The turns from the newest one that was answered without those before it, because the provider refuses them."""
    start = max((at for at, turn in enumerate(turns) if turn.alone), default=0)
    return list(turns[start:])


def _split_after(turns: list[Turn], id: str | None) -> tuple[list[Turn], list[Turn]]:
    """The turns up to this one, and those after it; none before when it is not among them."""
    at = next((at + 1 for at, turn in enumerate(turns) if turn.id == id), 0)
    return turns[:at], turns[at:]


def _is_cut(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[0].alone


def _was_taken(history: ChatHistory, spec: RequestSpec) -> bool:
    last = history.turns[-1] if history.turns else None
    if last is None or last.model != spec.name:
        return False
    return last.status == "completed" and last.reason != "refusal"


def _too_large(needed: int, budget: Budget) -> Failure:
    return Failure(
        "context_budget",
        f"The prompt needs about {needed} tokens and the model's context window allows {budget.total}",
        action="edit_prompt",
        hint="Shorten the prompt, or choose a model with a larger window",
        facts={"needed": needed, "available": budget.total},
    )
