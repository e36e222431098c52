"""Makes a summary without a model: by the structure of turns and by phrases in six languages. Deterministic.

It updates the previous summary: what is said again replaces what was said before, tasks that were done are closed,
errors that went away keep how. Decisions and tasks are heard from both sides, constraints from the user alone, and
nothing from tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...model.content import Turn
from . import facts, language, reading
from .fitting import FLOORS, Count, fitted
from .reading import Message, Piece
from .shape import (
    MAX_CONSTRAINTS,
    MAX_DECISIONS,
    MAX_GOAL_BYTES,
    MAX_SAID,
    MAX_SAID_BYTES,
    MAX_TASKS,
    Said,
    Summary,
    both_ends,
    line,
    one_line,
    rendered,
)
from .troubles import Work

SAME = 0.75
"""Share of common terms from which two entries say the same."""

CONSTRAINTS_SHARE = 0.3
"""Of the tokens at most: constraints outlast all else when a summary is cut, and a chat may be full of them."""

MAX_CONSTRAINT = 300
"""Characters: a longer sentence tells a story that has a "must" in it."""

CLOSES = 0.6
"""Share of a task's terms that a sentence must have to say that it is done."""


def extract(previous: Summary | None, turns: Sequence[Turn], count: Count, max_tokens: int) -> Summary:
    """The previous summary brought up to the last of these turns, within `max_tokens`."""
    known = previous or Summary()
    seen = reading.visible(turns)
    notes = _Notes(known)
    for piece in reading.pieces(reading.messages(seen)):
        notes.take(piece)
    notes.take_plans(seen)
    base = observed(known, turns)
    notes.leave_out(base.goal)
    decisions = notes.decisions.entries
    constraints = notes.constraints.within(count, int(CONSTRAINTS_SHARE * max_tokens))
    settled = {*decisions, *constraints}
    draft = msgspec.structs.replace(
        base,
        decisions=decisions,
        constraints=constraints,
        tasks=notes.tasks.entries,
        said=[said for said in base.said if one_line(said.text) not in settled],
    )
    room = max(int(FLOORS["facts"] * max_tokens), max_tokens - count(rendered(draft)))
    chosen = facts.chosen(known.facts, notes.candidates, count, room)
    return fitted(msgspec.structs.replace(draft, facts=chosen), count, max_tokens)


def observed(known: Summary, turns: Sequence[Turn]) -> Summary:
    """What needs no judgement: the goal and the user's messages as they are, files, errors, and how far it goes."""
    seen = reading.visible(turns)
    spoken = [message for message in reading.messages(seen) if message.speaker == "user"]
    goal, wished = (known.goal, None) if known.goal else _goal(spoken)
    said = [
        Said(turn_id=message.turn_id, text=both_ends(message.text, MAX_SAID_BYTES))
        for message in spoken[-MAX_SAID:]
        if message is not wished and not language.idle(message.text)
    ]
    work = Work(known.files, known.errors)
    for turn in seen:
        _watch(work, turn)
    return Summary(
        goal=goal,
        said=_newest_once([*known.said, *said]),
        files=work.files,
        errors=work.errors,
        up_to=turns[-1].id if turns else known.up_to,
    )


def _watch(work: Work, turn: Turn) -> None:
    for item in turn.items:
        if item.type == "user" and (text := reading.said(item)[: reading.MAX_TEXT]):
            _hear(work, text)
    work.turn(turn)


def _hear(work: Work, text: str) -> None:
    work.reported(text)
    first = text.strip().partition("\n")[0]
    kinds = language.heard(first)
    if "solved" in kinds and "unsolved" not in kinds and not first.endswith(("?", "？")):
        work.solved(first)


def _goal(spoken: Sequence[Message]) -> tuple[str, Message | None]:
    """The first message that wishes for something; the first of all when none does."""
    first = next((message for message in spoken if not language.idle(message.text)), None)
    first = first or next(iter(spoken), None)
    return (both_ends(first.text, MAX_GOAL_BYTES), first) if first else ("", None)


def _newest_once(said: Iterable[Said]) -> list[Said]:
    """Each message once, where it was said last."""
    last: dict[str, Said] = {}
    for one in said:
        last.pop(one.text, None)
        last[one.text] = one
    return list(last.values())[-MAX_SAID:]


class _Entries:
    """A list in which a new entry takes the place of those that say the same.

    Of what is `settled`, an entry also does away with what it replaces by name, and when there are too many one from
    the middle goes: what was settled first is what the rest stands on. Of anything else the oldest goes.
    """

    def __init__(self, entries: Sequence[str], most: int, *, settled: bool) -> None:
        self._most = most
        self._settled = settled
        self._about: dict[str, frozenset[str]] = {entry: language.terms(entry) for entry in entries}

    @property
    def entries(self) -> list[str]:
        return list(self._about)

    def within(self, count: Count, room: int) -> list[str]:
        """The entries without those in the middle that there is no room for."""
        kept = [(entry, count(line(entry))) for entry in self._about]
        while sum(cost for _, cost in kept) > room:
            del kept[len(kept) // 2]
        return [entry for entry, _ in kept]

    def add(self, text: str) -> None:
        entry = one_line(text)
        about = language.terms(entry)
        if not about:
            return
        gone = language.replaced(entry) if self._settled else frozenset()
        stale = [old for old, terms in self._about.items() if _same(terms, about) or gone & terms]
        for old in stale:
            del self._about[old]
        self._about[entry] = about
        if len(self._about) > self._most:
            del self._about[self.entries[self._most // 2 if self._settled else 0]]

    def leave_out(self, text: str) -> None:
        """Drop the entries that stand in this text."""
        self._about = {entry: terms for entry, terms in self._about.items() if entry not in text}

    def close(self, about: frozenset[str]) -> None:
        """Drop the entries that these terms cover."""
        for entry, terms in list(self._about.items()):
            if terms and len(terms & about) >= CLOSES * len(terms):
                del self._about[entry]


class _Notes:
    """What is gathered from sentences, in the order in which they were said."""

    def __init__(self, known: Summary) -> None:
        self.decisions = _Entries(known.decisions, MAX_DECISIONS, settled=True)
        self.constraints = _Entries(known.constraints, MAX_CONSTRAINTS, settled=True)
        self.tasks = _Entries(known.tasks, MAX_TASKS, settled=False)
        self.candidates: list[facts.Candidate] = []

    def take(self, piece: Piece) -> None:
        if not self._listed(piece) and not self._spoken(piece) and (found := facts.candidate(piece)):
            self.candidates.append(found)

    def take_plans(self, turns: Iterable[Turn]) -> None:
        """Steps of the newest plan are open unless they are done; a plan that another one followed is history."""
        plans = [item for turn in turns for item in turn.items if item.type == "plan"]
        for plan in plans:
            for text, done in _steps(plan.entries or []):
                if done:
                    self.tasks.close(language.terms(text))
        for text, done in _steps(plans[-1].entries or []) if plans else []:
            if not done:
                self.tasks.add(text)

    def leave_out(self, goal: str) -> None:
        """What the goal says word for word needs no second place. Tasks do: they can be done while the goal stays."""
        text = one_line(goal, MAX_GOAL_BYTES)
        self.decisions.leave_out(text)
        self.constraints.leave_out(text)
        self.candidates = [one for one in self.candidates if one.fact.text not in text]

    def _listed(self, piece: Piece) -> bool:
        if piece.listed == "tasks":
            if piece.done:
                self.tasks.close(language.terms(piece.text))
            else:
                self.tasks.add(piece.text)
        elif piece.listed == "decisions":
            self.decisions.add(piece.text)
        elif piece.listed == "constraints" and piece.speaker == "user":
            self.constraints.add(piece.text)
        return piece.listed is not None

    def _spoken(self, piece: Piece) -> bool:
        if piece.asks or len(piece.text) > language.MAX_HEARD:
            return False
        kinds = language.heard(piece.text)
        by_user = piece.speaker == "user"
        if "done" in kinds and "undone" not in kinds:
            self.tasks.close(language.terms(piece.text))
        if "decision" in kinds or (by_user and "wish" in kinds):
            self.decisions.add(piece.text)
            return True
        if by_user and "constraint" in kinds and "idiom" not in kinds and len(piece.text) <= MAX_CONSTRAINT:
            self.constraints.add(piece.text)
            return True
        if "task" in kinds or (by_user and "reminder" in kinds):
            self.tasks.add(piece.text)
            return True
        return False


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SAME * len(one | other)


def _steps(entries: Sequence[dict[str, object]]) -> list[tuple[str, bool]]:
    return [
        (content, entry.get("status") == "completed")
        for entry in entries
        if isinstance(content := entry.get("content"), str)
    ]
