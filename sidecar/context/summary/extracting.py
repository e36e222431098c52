"""Extracts a summary without a model: from the structure of turns and from phrases in six languages.
Deterministic.

It updates the previous summary: a repeated statement replaces the earlier one, finished tasks are closed,
resolved errors keep their resolution. Decisions and tasks come from both sides, constraints only from the
user, and nothing from tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...model.content import Turn
from ...text.token_estimate import CountTokens
from . import facts, language, reading
from .fitting import FLOORS, fit_summary
from .reading import ChatMessage, Passage
from .shape import (
    MAX_CONSTRAINTS,
    MAX_DECISIONS,
    MAX_GOAL_BYTES,
    MAX_SAID,
    MAX_SAID_BYTES,
    MAX_TASKS,
    Summary,
    UserQuote,
    both_ends,
    entry_line,
    one_line,
    render_summary,
)
from .troubles import ToolHistory

SIMILARITY = 0.75
"""Share of common terms from which on two entries say the same."""

CONSTRAINTS_SHARE = 0.3
"""Of the tokens at most: constraints are cut last, and a chat may be full of them."""

MAX_CONSTRAINT = 300
"""Characters: a longer sentence is a description that contains a "must"."""

CLOSES = 0.6
"""Share of a task's terms that a sentence must contain to say that it is done."""


def extract(previous: Summary | None, turns: Sequence[Turn], count: CountTokens, max_tokens: int) -> Summary:
    """Return the previous summary updated to the last of these turns, within `max_tokens`."""
    known = previous or Summary()
    seen = reading.visible_turns(turns)
    notes = _NoteTaker(known)
    for piece in reading.pieces(reading.messages(seen)):
        notes.take(piece)
    notes.take_plans(seen)
    base = observe_turns(known, turns)
    notes.drop_contained(base.goal)
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
    # Facts get what the rest leaves, and at least their floor: with a long list of constraints there would
    # otherwise be none.
    space = max(int(FLOORS["facts"] * max_tokens), max_tokens - count(render_summary(draft)))
    chosen = facts.choose_facts(known.facts, notes.candidates, count, space)
    return fit_summary(msgspec.structs.replace(draft, facts=chosen), count, max_tokens)


def observe_turns(known: Summary, turns: Sequence[Turn]) -> Summary:
    """Add what needs no judgement: the goal and the user's messages verbatim, files, errors, and the last
    turn."""
    seen = reading.visible_turns(turns)
    spoken = [message for message in reading.messages(seen) if message.speaker == "user"]
    goal, wished = (known.goal, None) if known.goal else _goal(spoken)
    said = [
        UserQuote(turn_id=message.turn_id, text=both_ends(message.text, MAX_SAID_BYTES))
        for message in spoken[-MAX_SAID:]
        if message is not wished and not language.idle(message.text)
    ]
    work = ToolHistory(known.files, known.errors)
    for turn in seen:
        _observe_turn(work, turn)
    return Summary(
        goal=goal,
        said=_newest_once([*known.said, *said]),
        files=work.files,
        errors=work.errors,
        up_to=turns[-1].id if turns else known.up_to,
    )


def _observe_turn(work: ToolHistory, turn: Turn) -> None:
    for item in turn.items:
        if item.type == "user" and (text := reading.message_text(item)[: reading.MAX_TEXT]):
            _observe_text(work, text)
    work.turn(turn)


def _observe_text(work: ToolHistory, text: str) -> None:
    work.add_reported(text)
    first = text.strip().partition("\n")[0]
    kinds = language.phrase_kinds(first)
    # A question such as "is it fixed?" contains the words of a solution, and reports none.
    if "solved" in kinds and "unsolved" not in kinds and not first.endswith(("?", "？")):
        work.resolve_newest(first)


def _goal(spoken: Sequence[ChatMessage]) -> tuple[str, ChatMessage | None]:
    """Return the first message with a request; the first of all when there is none."""
    first = next((message for message in spoken if not language.idle(message.text)), None)
    first = first or next(iter(spoken), None)
    return (both_ends(first.text, MAX_GOAL_BYTES), first) if first else ("", None)


def _newest_once(said: Iterable[UserQuote]) -> list[UserQuote]:
    """Return each message once, at its last occurrence."""
    last: dict[str, UserQuote] = {}
    for one in said:
        last.pop(one.text, None)
        last[one.text] = one
    return list(last.values())[-MAX_SAID:]


class _EntryList:
    """A list in which a new entry replaces those that say the same.

    In a `settled` list an entry also removes what it replaces by name, and when there are too many, one from
    the middle is dropped: the first ones are the basis of the rest. In any other list the oldest is dropped.
    """

    def __init__(self, entries: Sequence[str], most: int, *, settled: bool) -> None:
        self._most = most
        self._settled = settled
        self._about: dict[str, frozenset[str]] = {entry: language.terms(entry) for entry in entries}

    @property
    def entries(self) -> list[str]:
        return list(self._about)

    def within(self, count: CountTokens, space: int) -> list[str]:
        """Return the entries without those in the middle that do not fit."""
        kept = [(entry, count(entry_line(entry))) for entry in self._about]
        while sum(cost for _, cost in kept) > space:
            del kept[len(kept) // 2]
        return [entry for entry, _ in kept]

    def add(self, text: str) -> None:
        entry = one_line(text)
        about = language.terms(entry)
        if not about:
            return
        gone = language.replaced_terms(entry) if self._settled else frozenset()
        stale = [old for old, terms in self._about.items() if _same(terms, about) or gone & terms]
        for old in stale:
            del self._about[old]
        self._about[entry] = about
        if len(self._about) > self._most:
            # The middle of a settled list: the first decisions are the basis of the rest, and the newest are
            # what the work is about.
            del self._about[self.entries[self._most // 2 if self._settled else 0]]

    def drop_contained(self, text: str) -> None:
        """Drop the entries that this text contains."""
        self._about = {entry: terms for entry, terms in self._about.items() if entry not in text}

    def close(self, about: frozenset[str]) -> None:
        """Drop the entries that these terms cover."""
        for entry, terms in list(self._about.items()):
            # Of the terms of the entry, not of the message: a long report closes each task that it covers.
            if terms and len(terms & about) >= CLOSES * len(terms):
                del self._about[entry]


class _NoteTaker:
    """Collects entries from sentences, in the order in which they were said."""

    def __init__(self, known: Summary) -> None:
        self.decisions = _EntryList(known.decisions, MAX_DECISIONS, settled=True)
        self.constraints = _EntryList(known.constraints, MAX_CONSTRAINTS, settled=True)
        self.tasks = _EntryList(known.tasks, MAX_TASKS, settled=False)
        self.candidates: list[facts.FactCandidate] = []

    def take(self, piece: Passage) -> None:
        if not self._listed(piece) and not self._spoken(piece) and (found := facts.fact_candidate(piece)):
            self.candidates.append(found)

    def take_plans(self, turns: Iterable[Turn]) -> None:
        """Add the open steps of the newest plan; a plan that was followed by another is history."""
        plans = [item for turn in turns for item in turn.items if item.type == "plan"]
        for plan in plans:
            for text, done in _steps(plan.entries or []):
                if done:
                    self.tasks.close(language.terms(text))
        for text, done in _steps(plans[-1].entries or []) if plans else []:
            if not done:
                self.tasks.add(text)

    def drop_contained(self, goal: str) -> None:
        """Drop what the goal contains verbatim. Tasks stay: they can be done while the goal remains."""
        text = one_line(goal, MAX_GOAL_BYTES)
        self.decisions.drop_contained(text)
        self.constraints.drop_contained(text)
        self.candidates = [one for one in self.candidates if one.fact.text not in text]

    def _listed(self, piece: Passage) -> bool:
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

    def _spoken(self, piece: Passage) -> bool:
        if piece.asks or len(piece.text) > language.MAX_CHARACTERS_READ:
            return False
        kinds = language.phrase_kinds(piece.text)
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
    return len(one & other) >= SIMILARITY * len(one | other)


def _steps(entries: Sequence[dict[str, object]]) -> list[tuple[str, bool]]:
    return [
        (content, entry.get("status") == "completed")
        for entry in entries
        if isinstance(content := entry.get("content"), str)
    ]
