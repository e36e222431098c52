"""Walks turns in the chat's order and notes what their structure tells, on top of what was known before. Deterministic.

Nothing here looks at words to understand them, so it works in any language; what needs word lists, which know six,
comes from `context/summary` and `context/standing`. Output of tools is data: it gives an event its wording, and no
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...model.content import Item, Turn
from .. import standing
from ..summary import Summary, extract
from ..summary.reading import said, visible
from ..summary.shape import MAX_PATH_BYTES, clean, one_line
from ..summary.troubles import call_name
from . import git
from .shape import MAX_DEEDS, MAX_LOOKS, MAX_STEPS, Course, Deed, Look, Step

STATE_TOKENS = 1500
"""Of what a summary finds and a snapshot keeps: three times what it can show, so that something is left to choose."""

RULES_TOKENS = 400
MAX_WISH_BYTES = 480
MAX_DEED_BYTES = 240
MAX_OUTPUT = 2_000
"""Bytes of the newest prompt and of a deed; characters of an answer or a refusal that are read."""

MAX_PARTS = 6
MAX_PART_BYTES = 80
"""Words of a command by which it is known again, and bytes of each."""

_STOPPED = {"interrupted": "interrupted", "cancelled": "cancelled by the user", "failed": "failed"}


def brought_up(known: Course | None, turns: Sequence[Turn]) -> Course:
    """The course up to the last of these turns; hidden ones are passed over."""
    seen = visible(turns)
    if not seen:
        return known or Course()
    notes = _Notes(known or Course())
    for turn in seen:
        notes.take(turn)
    before = known.summary if known else None
    return notes.course(extract(before, seen, _rough, STATE_TOKENS))


def with_summary(course: Course, summary: Summary | None) -> Course:
    """With what a compaction's summary has settled: a model that wrote it understood any language."""
    if summary is None:
        return course
    own = course.summary
    merged = msgspec.structs.replace(
        own,
        goal=own.goal or summary.goal,
        decisions=list(dict.fromkeys([*summary.decisions, *own.decisions])),
        constraints=list(dict.fromkeys([*summary.constraints, *own.constraints])),
    )
    return msgspec.structs.replace(course, summary=merged)


class _Notes:
    def __init__(self, known: Course) -> None:
        self._known = known
        self._wish = known.wish
        self._stopped = known.stopped
        self._plan = known.plan
        self._git = {deed.key: deed for deed in known.git}
        self._answers = {deed.key: deed for deed in known.answers}
        self._refusals = {deed.key: deed for deed in known.refusals}
        self._looks = {look.place: look for look in known.looks}
        self._told: list[str] = []
        self._turns = known.turns
        self._up_to = known.up_to

    def take(self, turn: Turn) -> None:
        spoken = [text for item in turn.items if item.type == "user" and (text := said(item).strip())]
        if spoken:
            self._wish = one_line(spoken[-1], MAX_WISH_BYTES)
            self._told += spoken
        if turn.siblings and spoken:
            words = f"the user went back and asked anew: {spoken[0]}"
            _put(self._answers, Deed(key=f"anew {turn.id}", text=_short(words), turn_id=turn.id))
        for item in turn.items:
            if item.type == "plan":
                self._plan = _steps(item.entries or [])
            elif item.type == "tool":
                self._call(item, turn.id)
        self._stopped = _how_it_stopped(turn)
        self._turns += 1
        self._up_to = turn.id

    def course(self, summary: Summary) -> Course:
        return Course(
            summary=summary,
            wish=self._wish,
            stopped=self._stopped,
            rules=standing.gathered([*self._known.rules, *self._told], _rough, RULES_TOKENS),
            plan=self._plan,
            git=list(self._git.values())[-MAX_DEEDS:],
            answers=list(self._answers.values())[-MAX_DEEDS:],
            refusals=list(self._refusals.values())[-MAX_DEEDS:],
            looks=list(self._looks.values())[-MAX_LOOKS:],
            turns=self._turns,
            up_to=self._up_to,
        )

    def _call(self, item: Item, turn: str) -> None:
        call = call_name(item)
        if item.status == "denied":
            why = one_line(_output(item), MAX_DEED_BYTES)
            _put(self._refusals, Deed(key=call, text=_short(f"`{call}`: {why}"), turn_id=turn, parts=[call]))
        if item.status != "completed":
            return
        self._refusals.pop(call, None)
        if item.name == "ask_user":
            self._answer(item, turn)
        if not item.exit_code:
            self._operations(item, turn)
        for place, page in _places(item):
            self._looks.pop(place, None)
            self._looks[place] = Look(place=place, turn_id=turn, page=page)

    def _answer(self, item: Item, turn: str) -> None:
        """A question of the model and what the user chose."""
        question = one_line(str((item.input or {}).get("question") or ""), MAX_DEED_BYTES // 2)
        answer = one_line(_output(item), MAX_DEED_BYTES // 2)
        parts = [question, answer]
        _put(self._answers, Deed(key=question, text=f"{question} {answer}", turn_id=turn, parts=parts))

    def _operations(self, item: Item, turn: str) -> None:
        for command in _commands(item.input):
            for words in git.operations(command):
                done = git.committed(_output(item)) if words[1] == "commit" else None
                spelled = " ".join(words)
                text = _short(f"{spelled} → {done}" if done else spelled)
                parts = [one_line(word, MAX_PART_BYTES) for word in words[:MAX_PARTS]]
                _put(self._git, Deed(key=f"{spelled} {done or ''}", text=text, turn_id=turn, parts=parts))


def _put(deeds: dict[str, Deed], deed: Deed) -> None:
    """The newest of those that say the same, where it happened last."""
    deeds.pop(deed.key, None)
    deeds[deed.key] = deed


def _steps(entries: Sequence[dict[str, Any]]) -> list[Step]:
    return [
        Step(text=text, status=str(entry.get("status") or "pending"))
        for entry in entries[:MAX_STEPS]
        if isinstance(content := entry.get("content"), str) and (text := one_line(content, MAX_DEED_BYTES))
    ]


def _how_it_stopped(turn: Turn) -> str:
    if turn.status not in _STOPPED:
        return ""
    words = (turn.error or {}).get("message")
    why = f": {words}" if isinstance(words, str) and words else ""
    return _short(f"the last turn was {_STOPPED[turn.status]}{why}".replace("was failed", "failed"))


def _commands(given: Any) -> Iterable[str]:
    """The command lines of a call: of one command, or of several."""
    if not isinstance(given, dict):
        return
    several = given.get("commands")
    for one in [given, *(several if isinstance(several, list) else [])]:
        command = one.get("command") if isinstance(one, dict) else one
        if isinstance(command, str):
            yield command


def _places(item: Item) -> Iterable[tuple[str, bool]]:
    """The files that a call looked at or changed, and the page that it fetched."""
    if item.kind == "fetch":
        address = (item.input or {}).get("url") if isinstance(item.input, dict) else None
        if isinstance(address, str) and address:
            yield one_line(address, MAX_PATH_BYTES), True
    if item.kind == "search":
        return
    for place in [*(item.locations or []), *(item.changes or [])][:MAX_LOOKS]:
        path = place.get("path")
        if isinstance(path, str) and path and len(path.encode(errors="replace")) <= MAX_PATH_BYTES:
            yield " ".join(clean(path).split()), False


def _output(item: Item) -> str:
    text = (item.output or {}).get("text")
    return text[:MAX_OUTPUT] if isinstance(text, str) else ""


def _short(text: str) -> str:
    return one_line(text, MAX_DEED_BYTES)


def _rough(text: str) -> int:
    """Tokens by length: what is kept is chosen from again, with the model's own count, when it is drawn."""
    return -(-len(text.encode(errors="replace")) // 3)
