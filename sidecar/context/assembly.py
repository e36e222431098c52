"""One budget over everything that a request holds: who may claim how much, in which order. Pure and deterministic.

The order of claims: system, rules and the prompt with what is attached to it, which are never cut; tools, each whole
or not at all; the last two turns; pinned files; the summary; other open files; the patches' summary and diffs; git's
diff; a resume snapshot; retrieval; older turns. What a block leaves of its cap flows to the next. The sum never exceeds
the budget.

What comes in is text that somebody else has read, and counts; what goes out says which of it is sent, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .budget import Budget, Caps
from .materials import Assembly, Block, Count, Found, Included, Material, Materials, Past

LAST_TURNS = 2
"""So many of the newest turns go before everything but the prompt: what was just said."""

LAST_SHARE = 0.4
CUT_SHARE = 0.2
SMALL_LAST_SHARE = 0.10
"""Of a budget that cannot hold the whole chat, the most that they take whole, and cut; and of a small budget: what was
said earlier must find room, too."""

SMALL_BUDGET = 9_000
"""In a budget so small, what is found again of a long chat is worth more than some turns before the last two."""

FULL = 0.97
"""Of the budget: so much is used when there is more to say than fits."""

MAX_REFILLS = 4
"""How often what is found makes way for newer turns, until the budget is full; the last time for all that could fit."""

MIN_CUT = 48
"""Tokens: a smaller piece of a turn or a file tells nothing."""

FOUND = "earlier in this chat"
KEPT = "kept tool output, files and pages"
"""What the block of retrieval is called."""

BUDGET_ALLOWS = "budget-allows"
"""The gate of diffs that nobody has asked for: they may take what nothing else needs."""

MESSAGE_TOKENS = 8
"""Role and separators around a message."""

TOOL_TOKENS = 1
"""What joins one tool to the next."""


def assemble(materials: Materials, budget: Budget, caps: Caps, count: Count) -> Assembly:
    return _Assembler(materials, budget.total, caps, count).run()


_CutTurn = tuple[Past, Any, int, str]
"""A turn, how it is sent when it is cut, and that form's tokens and text."""


class _Assembler:
    def __init__(self, materials: Materials, total: int, caps: Caps, count: Count) -> None:
        self._m = materials
        self._caps = caps
        self._count = count
        self._room = total
        self._total = total
        self._blocks: list[Block] = []
        self._sent: list[str] = []
        self._spare = 0
        """What earlier blocks left of their caps."""

    def run(self) -> Assembly:
        asked = [(self._m.prompt, self._count(self._m.prompt.text) + self._m.prompt.extra + MESSAGE_TOKENS)]
        if self._m.attachments:
            attached = self._m.attachments
            asked.insert(0, (attached, self._count(attached.text) + attached.extra))
        fixed = [(material, self._count(material.text)) for material in self._m.fixed]
        needed = sum(tokens for _, tokens in [*fixed, *asked])
        if needed > self._total:
            return Assembly([], 0, [], {}, None, needed=needed)
        self._room -= needed
        for material, tokens in fixed:
            self._put(material, tokens, "full", material.text)
        tools = self._tools()
        turns = list(self._m.turns)
        last, turns = turns[-LAST_TURNS:], turns[:-LAST_TURNS]
        taken, cut = self._last_turns(last)
        self._files()
        before = last[: len(last) - len(taken) - (1 if cut else 0)]
        self._changes([*turns, *before])
        kept = self._room_for_snapshot([*turns, *before], cut is not None)
        sent = [*taken, *([cut[0]] if cut else [])]
        older, cuts, found = self._past([*turns, *before], sent, cut)
        taken = older + taken
        self._snapshot(kept, taken)
        self._history(taken, cuts)
        for material, tokens in asked:
            self._put(material, tokens, "full", material.text)
        used = sum(block.tokens for block in self._blocks if block.included != "dropped")
        spelled = {turn.id: made for turn, made, _, _ in cuts}
        return Assembly(self._blocks, used, [turn.id for turn in taken], spelled, found, tools)

    def _tools(self) -> frozenset[str]:
        """The most needed tools that fit their share, and a row that names the others."""
        left = min(self._room, self._caps.tools)
        sent: list[tuple[Material, int]] = []
        out: list[tuple[Material, int]] = []
        for material in self._m.tools:
            tokens = self._count(material.text) + TOOL_TOKENS
            fits = tokens <= left
            (sent if fits else out).append((material, tokens))
            left -= tokens if fits else 0
        if sent:
            text = ",".join(material.text for material, _ in sent)
            included: Included = "truncated" if out else "full"
            row = Block("tools", "tools", _named("tools", sent), _sum(sent), included, "always", text)
            self._blocks.append(row)
            self._room -= row.tokens
        if out:
            row = Block("tools:left-out", "tools", _named("left out", out), _sum(out), "dropped", "no-room")
            self._blocks.append(row)
        return frozenset(material.label for material, _ in sent)

    def _last_turns(self, turns: Sequence[Past]) -> tuple[list[Past], _CutTurn | None]:
        """The newest turns, whole when they fit; the first that does not, cut."""
        whole = sum(turn.tokens for turn in self._m.turns)
        all_fit = whole <= self._room and not self._m.more_turns
        whole_share, cut_share = (LAST_SHARE, CUT_SHARE)
        if self._total <= SMALL_BUDGET and self._m.retrieve:
            whole_share = cut_share = SMALL_LAST_SHARE
        room = self._room if all_fit else min(self._room, int(self._total * whole_share))
        taken: list[Past] = []
        for turn in reversed(turns):
            if turn.tokens > room:
                rest = room if all_fit else min(room, int(self._total * cut_share))
                return taken, self._cut_turn(turn, rest)
            taken.insert(0, turn)
            room -= turn.tokens
            self._take(turn.tokens, turn.text)
        return taken, None

    def _cut_turn(self, turn: Past, room: int) -> _CutTurn | None:
        if turn.cut is None or room < MIN_CUT:
            return None
        made = turn.cut(room)
        if made is None or made[1] > self._room:
            return None
        self._take(made[1], made[2])
        return (turn, *made)

    def _files(self) -> None:
        """Pinned files, the summary, then the others: each within its own cap, all within theirs."""
        left = self._caps.open_files
        for material in self._m.pinned:
            left -= self._capped(material, min(left, self._caps.per_file))
        if self._m.summary:
            self._capped(self._m.summary, self._room)
        if self._m.gathered:
            left -= self._capped(self._m.gathered, min(left, self._room))
        for material in self._m.files:
            cap = (
                self._caps.file_list
                if material.kind == "openFiles" and material.id == "files"
                else self._caps.per_file
            )
            left -= self._capped(material, min(left, cap))
        self._spare += max(0, left)

    def _changes(self, older: Sequence[Past]) -> None:
        if self._m.patch_summary:
            self._capped(self._m.patch_summary, self._caps.patch_summary)
        left = self._caps.diffs + self._spare
        found = self._caps.retrieval if self._m.more_turns else 0
        unused = self._room - sum(turn.tokens for turn in older) - found
        for material in self._m.diffs:
            asked_for = material.gate != BUDGET_ALLOWS
            taken = self._capped(material, left if asked_for else min(left, unused))
            left, unused = left - taken, unused - taken
        left += self._caps.git_diff
        if self._m.git_diff:
            left -= self._capped(self._m.git_diff, left)
        self._spare = max(0, left)

    def _past(
        self, turns: list[Past], last: list[Past], cut: _CutTurn | None
    ) -> tuple[list[Past], list[_CutTurn], Found | None]:
        """Older turns: all when they fit; else what retrieval finds in its cap, and the newest that fit beside it.

        `last` are sent already; `cut` is one of them, which takes what is left before any older one.
        """
        whole = sum(turn.tokens for turn in turns)
        if not cut and whole <= self._room and not self._m.more_turns:
            for turn in turns:
                self._take(turn.tokens, turn.text)
            self._skip_retrieval("all-there")
            self._shelf(self._caps.retrieval + self._spare)
            return turns, [], None
        cap = min(self._room, self._caps.retrieval + self._spare)
        if self._total <= SMALL_BUDGET:
            cap = self._room
        beside = [] if cut else self._newest(turns, self._room - cap)
        cap -= self._shelf(cap // 2, beside)
        gate = self._retrieval_gate(beside)
        found = self._found(cap, [*beside, *last]) if gate else None
        cut = cut and self._regrown(cut)
        older, found = self._filled(turns, last, found, cap)
        self._tell_found(found, gate)
        for turn in older:
            self._take(turn.tokens, turn.text)
        rest = turns[: len(turns) - len(older)]
        next_one = rest[-1] if rest and rest[-1].id not in _turns(found) else None
        also_cut = self._cut_turn(next_one, self._room) if next_one else None
        return older, [one for one in (also_cut, cut) if one], found

    def _shelf(self, room: int, beside: Sequence[Past] = ()) -> int:
        """What the index has of what the prompt asks for; the tokens that it takes."""
        if not self._m.shelf or not self._m.retrieval_gate:
            return 0
        sent = [*self._sent, *(turn.text for turn in beside)]
        gate = self._m.retrieval_gate(sent)
        found = self._m.shelf(min(room, self._room) - MESSAGE_TOKENS, sent) if gate else None
        if not gate or not found or found.tokens > self._room:
            reason = "nothing-found" if gate else "covered"
            self._blocks.append(Block("kept", "retrieval", KEPT, 0, "dropped", reason))
            return 0
        self._blocks.append(Block("kept", "retrieval", KEPT, found.tokens, "full", gate, found.text))
        self._take(found.tokens, found.text)
        return found.tokens

    def _retrieval_gate(self, beside: list[Past]) -> str | None:
        """The gate that opens over all that is sent."""
        if not self._m.retrieval_gate or not self._m.retrieve:
            return None
        return self._m.retrieval_gate([*self._sent, *(turn.text for turn in beside)])

    def _found(self, cap: int, sent: list[Past]) -> Found | None:
        """What retrieval brings within a cap, without the turns that are sent anyway."""
        assert self._m.retrieve
        found = self._m.retrieve(cap - MESSAGE_TOKENS, frozenset(turn.id for turn in sent))
        if not found or found.tokens > self._room:
            return None
        self._take(found.tokens, found.text)
        return found

    def _filled(
        self, turns: list[Past], last: list[Past], found: Found | None, cap: int
    ) -> tuple[list[Past], Found | None]:
        """The newest turns that fit beside what was found; something else is found where it stands in their way."""
        older = self._newest(turns, self._room, _turns(found))
        for attempt in range(MAX_REFILLS):
            if not found or not self._is_blocked(turns, older, found):
                break
            self._give_back(found)
            older = self._newest(turns, self._room - found.tokens)
            is_final = attempt == MAX_REFILLS - 1
            sent = self._newest(turns, self._room) if is_final else turns[-len(older) - 1 :]
            found = self._found(min(cap, self._room - _tokens(older)), [*sent, *last])
            older = self._newest(turns, self._room, _turns(found))
        return older, found

    def _give_back(self, found: Found) -> None:
        self._room += found.tokens
        self._sent.remove(found.text)

    def _is_blocked(self, turns: list[Past], older: list[Past], found: Found) -> bool:
        """Whether much room stays empty because the next turn was found already: then it is better sent whole, and
        something else found in its place."""
        left = self._room - _tokens(older)
        rest = turns[: len(turns) - len(older)]
        return bool(rest) and rest[-1].id in found.turns and left > self._total * (1 - FULL)

    def _tell_found(self, found: Found | None, gate: str | None) -> None:
        if found and gate:
            row = Block("retrieval", "retrieval", FOUND, found.tokens, "full", gate, found.text)
            self._blocks.append(row)
        else:
            self._skip_retrieval("nothing-found" if gate else "covered")

    def _regrown(self, cut: _CutTurn) -> _CutTurn:
        """The turn cut anew, with what others have left of the budget."""
        turn, _, tokens, text = cut
        self._room += tokens
        self._sent.remove(text)
        return self._cut_turn(turn, self._room) or self._again(cut)

    def _again(self, cut: _CutTurn) -> _CutTurn:
        self._take(cut[2], cut[3])
        return cut

    def _room_for_snapshot(self, turns: list[Past], partly: bool) -> int:
        """Set some room aside: older turns would take all, and the snapshot tells what is not among them."""
        resuming = self._m.resuming
        whole = not partly and not self._m.more_turns and sum(turn.tokens for turn in turns) <= self._room
        if resuming is None or not resuming.open or (whole and resuming.unless_whole):
            return 0
        kept = max(0, min(self._caps.snapshot, self._room))
        self._room -= kept
        return kept

    def _snapshot(self, kept: int, turns: list[Past]) -> None:
        resuming = self._m.resuming
        if resuming is None:
            return
        self._room += kept
        material = Material(resuming.id, "summary", resuming.label, "", resuming.gate)
        if not kept:
            whole = resuming.open and len(turns) == len(self._m.turns) and not self._m.more_turns
            gate = resuming.gate if not resuming.open else "all-there" if whole else "no-room"
            self._blocks.append(_dropped(material, 0, gate))
            return
        fixed = [block.text for block in self._blocks if block.kind in ("system", "rules")]
        text = resuming.draw([*fixed, *self._sent, self._m.prompt.text], kept)
        tokens = self._count(text)
        if not text or tokens > self._room:
            self._blocks.append(_dropped(material, 0, "no-room" if text else "covered"))
            return
        self._put(material, tokens, "full", text)
        self._take(tokens, text)

    def _newest(self, turns: list[Past], room: int, known: frozenset[str] = frozenset()) -> list[Past]:
        """The newest turns that fit, up to one that was found already: it would be sent twice."""
        taken: list[Past] = []
        for turn in reversed(turns):
            room -= turn.tokens
            if room < 0 or turn.id in known:
                break
            taken.insert(0, turn)
        return taken

    def _skip_retrieval(self, gate: str) -> None:
        if self._m.retrieve:
            self._blocks.append(Block("retrieval", "retrieval", FOUND, 0, "dropped", gate))

    def _capped(self, material: Material, cap: int) -> int:
        """Send the material within a cap, cut when it must be; the tokens that it took."""
        if not material.open:
            self._blocks.append(_dropped(material, 0, material.gate))
            return 0
        room = min(cap, self._room)
        tokens = self._count(material.text)
        if tokens <= room:
            self._put(material, tokens, "full", material.text)
            self._take(tokens, material.text)
            return tokens
        text = material.cut(material.text, room) if material.cut and room >= MIN_CUT else ""
        tokens_cut = self._count(text) if text else 0
        if not text or tokens_cut > room:
            self._blocks.append(_dropped(material, tokens, "no-room"))
            return 0
        self._put(material, tokens_cut, "truncated", text)
        self._take(tokens_cut, text)
        return tokens_cut

    def _history(self, turns: list[Past], cuts: list[_CutTurn]) -> None:
        tokens = _tokens(turns) + sum(cut[2] for cut in cuts)
        count = len(turns) + len(cuts)
        if not count:
            return
        is_all = not cuts and not self._m.more_turns and count == len(self._m.turns)
        text = "\n".join([*(cut[3] for cut in cuts), *(turn.text for turn in turns)])
        included: Included = "full" if is_all else "truncated"
        self._blocks.append(Block("history", "history", f"{count} turns", tokens, included, "recent", text))

    def _put(self, material: Material, tokens: int, included: Included, text: str) -> None:
        self._blocks.append(
            Block(material.id, material.kind, material.label, tokens, included, material.gate, text)
        )

    def _take(self, tokens: int, text: str) -> None:
        self._room -= tokens
        self._sent.append(text)


def _dropped(material: Material, tokens: int, gate: str) -> Block:
    return Block(material.id, material.kind, material.label, tokens, "dropped", gate)


def _tokens(turns: Sequence[Past]) -> int:
    return sum(turn.tokens for turn in turns)


def _turns(found: Found | None) -> frozenset[str]:
    return frozenset(found.turns) if found else frozenset()


def _named(what: str, tools: Sequence[tuple[Material, int]]) -> str:
    return f"{what}: {', '.join(sorted(material.label for material, _ in tools))}"


def _sum(tools: Sequence[tuple[Material, int]]) -> int:
    return sum(tokens for _, tokens in tools)
