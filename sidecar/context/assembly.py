"""Assembles a request within one token budget: which block gets how many tokens, in which order. Pure and
deterministic.

The order: system, rules and the prompt with its attachments, which are never cut; tools, each whole or not at
all; the last two turns; pinned files; the summary; other open files; the summary and diffs of patches; the
git diff; a resume snapshot; retrieval; older turns. What a block does not use of its cap is available to the
next. The sum never exceeds the budget.

The input is text that other modules have read, and a token counter; the result says what is sent, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..text.plural import counted
from ..text.token_estimate import CountTokens
from .budget import Budget, Caps
from .materials import (
    Assembly,
    Candidate,
    Candidates,
    Inclusion,
    ManifestBlock,
    PastTurn,
    RetrievedText,
)

LAST_TURNS = 2
"""How many of the newest turns come before everything but the prompt, because they were just said."""

LAST_SHARE = 0.4
CUT_SHARE = 0.2
SMALL_LAST_SHARE = 0.10
"""The most that the last turns take whole, and cut, when the chat does not fit the budget, and in a small
budget: earlier turns need tokens too."""

SMALL_BUDGET = 9_000
"""In a budget this small, text retrieved from a long chat is worth more than some turns before the last two."""

FULL_SHARE = 0.97
"""Share of the budget that is used when there is more to send than fits."""

MAX_REFILLS = 4
"""How often retrieved text is exchanged for newer turns until the budget is full. Each exchange can block
another turn; the last one retrieves from none of the turns that could fit, so that none is blocked."""

MIN_CUT = 48
"""Tokens: a smaller piece of a turn or a file carries no information."""

RETRIEVED_LABEL = "earlier in this chat"
INDEX_LABEL = "kept tool output, files and pages"
"""The label of the retrieval block."""

BUDGET_ALLOWS = "budget-allows"
"""The gate of diffs that the prompt does not ask for: they may use what nothing else needs."""

NO_ROOM = "no-room"
"""The gate of what was dropped because the budget has no tokens left for it."""

UNAVAILABLE = "unavailable"
"""The gate of what could not be read: rules that are broken, or git's diff when git fails."""

MESSAGE_TOKENS = 8
"""Role and separators around a message."""

TOOL_TOKENS = 1
"""The separator between two tools."""


def assemble(materials: Candidates, budget: Budget, caps: Caps, count: CountTokens) -> Assembly:
    return _Assembler(materials, budget.total, caps, count).run()


_CutTurn = tuple[PastTurn, Any, int, str]
"""A turn, its cut form, and the tokens and text of that form."""


class _Assembler:
    def __init__(self, materials: Candidates, total: int, caps: Caps, count: CountTokens) -> None:
        self._candidates = materials
        self._caps = caps
        self._count = count
        self._space = total
        self._total = total
        self._blocks: list[ManifestBlock] = []
        self._sent: list[str] = []
        self._spare = 0
        """What earlier blocks did not use of their caps."""

    def run(self) -> Assembly:
        # The order of the steps is the order of precedence: each takes from what the earlier ones left.
        asked = [
            (
                self._candidates.prompt,
                self._count(self._candidates.prompt.text) + self._candidates.prompt.extra + MESSAGE_TOKENS,
            )
        ]
        if self._candidates.attachments:
            attached = self._candidates.attachments
            asked.insert(0, (attached, self._count(attached.text) + attached.extra))
        fixed = [(candidate, self._count(candidate.text)) for candidate in self._candidates.fixed]
        needed = sum(tokens for _, tokens in [*fixed, *asked])
        # Nothing is sent instead of a cut: the user's words are never shortened unasked.
        if needed > self._total:
            return Assembly([], 0, [], {}, None, needed=needed)
        self._space -= needed
        for candidate, tokens in fixed:
            if candidate.open:
                self._put(candidate, tokens, candidate.inclusion(), candidate.text)
            else:
                self._blocks.append(_dropped_block(candidate, 0, candidate.gate))
        tools = self._tools()
        turns = list(self._candidates.turns)
        # The last turns must not leave the summary of their own patches out.
        reserved = self._patch_summary_tokens()
        self._space -= reserved
        last, turns = turns[-LAST_TURNS:], turns[:-LAST_TURNS]
        taken, cut = self._last_turns(last)
        self._files()
        self._space += reserved
        before = last[: len(last) - len(taken) - (1 if cut else 0)]
        self._changes([*turns, *before])
        kept = self._space_for_snapshot([*turns, *before], cut is not None)
        sent = [*taken, *([cut[0]] if cut else [])]
        older, cuts, found = self._older_turns([*turns, *before], sent, cut)
        taken = older + taken
        self._snapshot(kept, taken)
        self._history(taken, cuts)
        for candidate, tokens in asked:
            self._put(candidate, tokens, "full", candidate.text)
        used = sum(block.tokens for block in self._blocks if block.included != "dropped")
        spelled = {turn.id: made for turn, made, _, _ in cuts}
        return Assembly(self._blocks, used, [turn.id for turn in taken], spelled, found, tools)

    def _patch_summary_tokens(self) -> int:
        summary = self._candidates.patch_summary
        if summary is None or not summary.open:
            return 0
        return min(self._count(summary.text), self._caps.patch_summary, self._space)

    def _tools(self) -> frozenset[str]:
        """Send the most needed tools that fit their share, and add a row that names the others."""
        left = min(self._space, self._caps.tools)
        sent: list[tuple[Candidate, int]] = []
        out: list[tuple[Candidate, int]] = []
        for candidate in self._candidates.tools:
            tokens = self._count(candidate.text) + TOOL_TOKENS
            fits = tokens <= left
            (sent if fits else out).append((candidate, tokens))
            # It goes on after one that does not fit: a smaller tool further down may.
            left -= tokens if fits else 0
        if sent:
            text = ",".join(candidate.text for candidate, _ in sent)
            included: Inclusion = "truncated" if out else "full"
            row = ManifestBlock(
                "tools", "tools", _tool_names("tools", sent), _tool_tokens(sent), included, "always", text
            )
            self._blocks.append(row)
            self._space -= row.tokens
        if out:
            row = ManifestBlock(
                "tools:left-out",
                "tools",
                _tool_names("left out", out),
                _tool_tokens(out),
                "dropped",
                NO_ROOM,
            )
            self._blocks.append(row)
        return frozenset(candidate.label for candidate, _ in sent)

    def _last_turns(self, turns: Sequence[PastTurn]) -> tuple[list[PastTurn], _CutTurn | None]:
        """Return the newest turns, whole if they fit, and the first that does not fit, cut."""
        whole = sum(turn.tokens for turn in self._candidates.turns)
        all_fit = whole <= self._space and not self._candidates.more_turns
        whole_share, cut_share = (LAST_SHARE, CUT_SHARE)
        if self._total <= SMALL_BUDGET and self._candidates.retrieve:
            whole_share = cut_share = SMALL_LAST_SHARE
        space = self._space if all_fit else min(self._space, int(self._total * whole_share))
        taken: list[PastTurn] = []
        for turn in reversed(turns):
            if turn.tokens > space:
                rest = space if all_fit else min(space, int(self._total * cut_share))
                return taken, self._cut_turn(turn, rest)
            taken.insert(0, turn)
            space -= turn.tokens
            self._take(turn.tokens, turn.text)
        return taken, None

    def _cut_turn(self, turn: PastTurn, space: int) -> _CutTurn | None:
        if turn.cut is None or space < MIN_CUT:
            return None
        made = turn.cut(space)
        if made is None or made[1] > self._space:
            return None
        self._take(made[1], made[2])
        return (turn, *made)

    def _files(self) -> None:
        """Add pinned files, the summary, then other files: each within its own cap, all within theirs."""
        left = self._caps.open_files
        for candidate in self._candidates.pinned:
            left -= self._put_capped(candidate, min(left, self._caps.per_file))
        if self._candidates.summary:
            self._put_capped(self._candidates.summary, self._space)
        if self._candidates.gathered:
            left -= self._put_capped(self._candidates.gathered, min(left, self._space))
        for candidate in self._candidates.files:
            cap = (
                self._caps.file_list
                if candidate.kind == "openFiles" and candidate.id == "files"
                else self._caps.per_file
            )
            left -= self._put_capped(candidate, min(left, cap))
        self._spare += max(0, left)

    def _changes(self, older: Sequence[PastTurn]) -> None:
        if self._candidates.patch_summary:
            self._put_capped(self._candidates.patch_summary, self._caps.patch_summary)
        left = self._caps.diffs + self._spare
        found = self._caps.retrieval if self._candidates.more_turns else 0
        unused = self._space - sum(turn.tokens for turn in older) - found
        for candidate in self._candidates.diffs:
            asked_for = candidate.gate != BUDGET_ALLOWS
            taken = self._put_capped(candidate, left if asked_for else min(left, unused))
            left, unused = left - taken, unused - taken
        left += self._caps.git_diff
        if self._candidates.git_diff:
            left -= self._put_capped(self._candidates.git_diff, left)
        self._spare = max(0, left)

    def _older_turns(
        self, turns: list[PastTurn], last: list[PastTurn], cut: _CutTurn | None
    ) -> tuple[list[PastTurn], list[_CutTurn], RetrievedText | None]:
        """Return older turns: all if they fit; otherwise what retrieval finds within its cap, and the newest
        that fit beside it.

        `last` are already sent; `cut` is one of them, which gets the remaining tokens before any older turn.
        """
        whole = sum(turn.tokens for turn in turns)
        if not cut and whole <= self._space and not self._candidates.more_turns:
            for turn in turns:
                self._take(turn.tokens, turn.text)
            self._skip_retrieval("all-there")
            self._index_tokens(self._caps.retrieval + self._spare)
            return turns, [], None
        cap = min(self._space, self._caps.retrieval + self._spare)
        if self._total <= SMALL_BUDGET:
            cap = self._space
        # What will be sent at least: retrieval must not find it a second time.
        beside = [] if cut else self._newest(turns, self._space - cap)
        cap -= self._index_tokens(cap // 2, beside)
        gate = self._retrieval_gate(beside)
        found = self._retrieve(cap, [*beside, *last]) if gate else None
        # It was cut before anybody knew what the other blocks would leave.
        cut = cut and self._regrow_cut(cut)
        older, found = self._fill_with_turns(turns, last, found, cap)
        self._report_retrieved(found, gate)
        for turn in older:
            self._take(turn.tokens, turn.text)
        rest = turns[: len(turns) - len(older)]
        next_one = rest[-1] if rest and rest[-1].id not in _retrieved_turns(found) else None
        also_cut = self._cut_turn(next_one, self._space) if next_one else None
        return older, [one for one in (also_cut, cut) if one], found

    def _index_tokens(self, space: int, beside: Sequence[PastTurn] = ()) -> int:
        """Add what the index has for the prompt; return the tokens that it takes."""
        if not self._candidates.index_lookup or not self._candidates.retrieval_gate:
            return 0
        sent = [*self._sent, *(turn.text for turn in beside)]
        gate = self._candidates.retrieval_gate(sent)
        found = (
            self._candidates.index_lookup(min(space, self._space) - MESSAGE_TOKENS, sent) if gate else None
        )
        if not gate or not found or found.tokens > self._space:
            reason = "nothing-found" if gate else "covered"
            self._blocks.append(ManifestBlock("kept", "retrieval", INDEX_LABEL, 0, "dropped", reason))
            return 0
        self._blocks.append(
            ManifestBlock("kept", "retrieval", INDEX_LABEL, found.tokens, "full", gate, found.text)
        )
        self._take(found.tokens, found.text)
        return found.tokens

    def _retrieval_gate(self, beside: list[PastTurn]) -> str | None:
        """Return the gate that opens, given everything that is sent."""
        if not self._candidates.retrieval_gate or not self._candidates.retrieve:
            return None
        return self._candidates.retrieval_gate([*self._sent, *(turn.text for turn in beside)])

    def _retrieve(self, cap: int, sent: list[PastTurn]) -> RetrievedText | None:
        """Return what retrieval finds within a cap, without the turns that are sent anyway."""
        assert self._candidates.retrieve
        found = self._candidates.retrieve(cap - MESSAGE_TOKENS, frozenset(turn.id for turn in sent))
        if not found or found.tokens > self._space:
            return None
        self._take(found.tokens, found.text)
        return found

    def _fill_with_turns(
        self, turns: list[PastTurn], last: list[PastTurn], found: RetrievedText | None, cap: int
    ) -> tuple[list[PastTurn], RetrievedText | None]:
        """Return the newest turns that fit beside the retrieved text; retrieve other text if that blocks a
        turn."""
        older = self._newest(turns, self._space, _retrieved_turns(found))
        for attempt in range(MAX_REFILLS):
            # Retrieved text that contains the next turn ends the run of whole turns early, and its space stays
            # unused.
            if not found or not self._is_blocked(turns, older, found):
                break
            self._release_retrieved(found)
            older = self._newest(turns, self._space - found.tokens)
            is_final = attempt == MAX_REFILLS - 1
            sent = self._newest(turns, self._space) if is_final else turns[-len(older) - 1 :]
            found = self._retrieve(min(cap, self._space - _tokens(older)), [*sent, *last])
            older = self._newest(turns, self._space, _retrieved_turns(found))
        return older, found

    def _release_retrieved(self, found: RetrievedText) -> None:
        self._space += found.tokens
        self._sent.remove(found.text)

    def _is_blocked(self, turns: list[PastTurn], older: list[PastTurn], found: RetrievedText) -> bool:
        """Return whether much space stays unused because the next turn was retrieved already: then the whole
        turn is sent, and other text is retrieved."""
        left = self._space - _tokens(older)
        rest = turns[: len(turns) - len(older)]
        return bool(rest) and rest[-1].id in found.turns and left > self._total * (1 - FULL_SHARE)

    def _report_retrieved(self, found: RetrievedText | None, gate: str | None) -> None:
        if found and gate:
            row = ManifestBlock(
                "retrieval", "retrieval", RETRIEVED_LABEL, found.tokens, "full", gate, found.text
            )
            self._blocks.append(row)
        else:
            self._skip_retrieval("nothing-found" if gate else "covered")

    def _regrow_cut(self, cut: _CutTurn) -> _CutTurn:
        """Cut the turn again, with what the other blocks did not use of the budget."""
        turn, _, tokens, text = cut
        self._space += tokens
        self._sent.remove(text)
        return self._cut_turn(turn, self._space) or self._recut(cut)

    def _recut(self, cut: _CutTurn) -> _CutTurn:
        self._take(cut[2], cut[3])
        return cut

    def _space_for_snapshot(self, turns: list[PastTurn], partly: bool) -> int:
        """Reserve tokens for the snapshot: older turns would take all, and the snapshot contains what is not
        among them."""
        resuming = self._candidates.resuming
        whole = (
            not partly
            and not self._candidates.more_turns
            and sum(turn.tokens for turn in turns) <= self._space
        )
        if resuming is None or not resuming.open or (whole and resuming.unless_whole):
            return 0
        kept = max(0, min(self._caps.snapshot, self._space))
        self._space -= kept
        return kept

    def _snapshot(self, kept: int, turns: list[PastTurn]) -> None:
        resuming = self._candidates.resuming
        if resuming is None:
            return
        self._space += kept
        candidate = Candidate(resuming.id, "summary", resuming.label, "", resuming.gate)
        if not kept:
            whole = (
                resuming.open
                and len(turns) == len(self._candidates.turns)
                and not self._candidates.more_turns
            )
            gate = resuming.gate if not resuming.open else "all-there" if whole else NO_ROOM
            self._blocks.append(_dropped_block(candidate, 0, gate))
            return
        fixed = [block.text for block in self._blocks if block.kind in ("system", "rules")]
        text = resuming.draw([*fixed, *self._sent, self._candidates.prompt.text], kept)
        tokens = self._count(text)
        if not text or tokens > self._space:
            self._blocks.append(_dropped_block(candidate, 0, NO_ROOM if text else "covered"))
            return
        self._put(candidate, tokens, "full", text)
        self._take(tokens, text)

    def _newest(
        self, turns: list[PastTurn], space: int, known: frozenset[str] = frozenset()
    ) -> list[PastTurn]:
        """Return the newest turns that fit, up to one that was retrieved already: it would be sent twice."""
        taken: list[PastTurn] = []
        for turn in reversed(turns):
            space -= turn.tokens
            if space < 0 or turn.id in known:
                break
            taken.insert(0, turn)
        return taken

    def _skip_retrieval(self, gate: str) -> None:
        if self._candidates.retrieve:
            self._blocks.append(ManifestBlock("retrieval", "retrieval", RETRIEVED_LABEL, 0, "dropped", gate))

    def _put_capped(self, candidate: Candidate, cap: int) -> int:
        """Send the candidate within a cap, cut if needed; return the tokens that it took."""
        if not candidate.open:
            self._blocks.append(_dropped_block(candidate, 0, candidate.gate))
            return 0
        space = min(cap, self._space)
        tokens = self._count(candidate.text)
        if tokens <= space:
            self._put(candidate, tokens, candidate.inclusion(), candidate.text)
            self._take(tokens, candidate.text)
            return tokens
        text = candidate.cut(candidate.text, space) if candidate.cut and space >= MIN_CUT else ""
        tokens_cut = self._count(text) if text else 0
        if not text or tokens_cut > space:
            self._blocks.append(_dropped_block(candidate, tokens, NO_ROOM))
            return 0
        self._put(candidate, tokens_cut, candidate.inclusion(cut=True), text)
        self._take(tokens_cut, text)
        return tokens_cut

    def _history(self, turns: list[PastTurn], cuts: list[_CutTurn]) -> None:
        tokens = _tokens(turns) + sum(cut[2] for cut in cuts)
        count = len(turns) + len(cuts)
        if not count:
            return
        is_all = not cuts and not self._candidates.more_turns and count == len(self._candidates.turns)
        text = "\n".join([*(cut[3] for cut in cuts), *(turn.text for turn in turns)])
        included: Inclusion = "full" if is_all else "truncated"
        self._blocks.append(
            ManifestBlock("history", "history", counted(count, "turns"), tokens, included, "recent", text)
        )

    def _put(self, candidate: Candidate, tokens: int, included: Inclusion, text: str) -> None:
        self._blocks.append(
            ManifestBlock(
                candidate.id, candidate.kind, candidate.label, tokens, included, candidate.gate, text
            )
        )

    def _take(self, tokens: int, text: str) -> None:
        self._space -= tokens
        self._sent.append(text)


def _dropped_block(candidate: Candidate, tokens: int, gate: str) -> ManifestBlock:
    return ManifestBlock(candidate.id, candidate.kind, candidate.label, tokens, "dropped", gate)


def _tokens(turns: Sequence[PastTurn]) -> int:
    return sum(turn.tokens for turn in turns)


def _retrieved_turns(found: RetrievedText | None) -> frozenset[str]:
    return frozenset(found.turns) if found else frozenset()


def _tool_names(what: str, tools: Sequence[tuple[Candidate, int]]) -> str:
    return f"{what}: {', '.join(sorted(candidate.label for candidate, _ in tools))}"


def _tool_tokens(tools: Sequence[tuple[Candidate, int]]) -> int:
    return sum(tokens for _, tokens in tools)
