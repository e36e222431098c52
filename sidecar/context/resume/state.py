"""Reads turns in the chat's order and updates the session's state from their structure. Deterministic.

Nothing here interprets words, so it works in any language; `context/summary` and `context/standing` use word
lists, for six languages. Tool output is data: it is quoted in an entry and used for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...model import JsonObject
from ...model.content import Item, Turn
from ...text.token_estimate import estimate_tokens
from .. import standing
from ..summary import Summary, extract
from ..summary.reading import message_text, visible_turns
from ..summary.shape import MAX_PATH_BYTES, clean_text, one_line
from ..summary.troubles import call_name
from . import git
from .shape import MAX_ACTIONS, MAX_STEPS, MAX_VISITS, FileVisit, PlanStep, SessionAction, SessionState

STATE_TOKENS = 1500
"""Tokens of a summary's findings that a snapshot stores: three times what it can show, so that it can choose."""

RULES_TOKENS = 400
MAX_WISH_BYTES = 480
MAX_ACTION_BYTES = 240
MAX_OUTPUT = 2_000
"""Bytes of the newest prompt and of an action; characters of an answer or a refusal that are read."""

MAX_PARTS = 6
MAX_PART_BYTES = 80
"""Words of a command that identify it, and bytes of each."""

_STOPPED = {"interrupted": "interrupted", "cancelled": "cancelled by the user", "failed": "failed"}


def update_state(known: SessionState | None, turns: Sequence[Turn]) -> SessionState:
    """Return the state up to the last of these turns, without hidden ones."""
    seen = visible_turns(turns)
    if not seen:
        return known or SessionState()
    notes = _StateBuilder(known or SessionState())
    for turn in seen:
        notes.take(turn)
    before = known.summary if known else None
    return notes.course(extract(before, seen, estimate_tokens, STATE_TOKENS))


def with_summary(course: SessionState, summary: Summary | None) -> SessionState:
    """Return the state with the content of a compaction's summary: the model that wrote it understood any
    language."""
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


class _StateBuilder:
    def __init__(self, known: SessionState) -> None:
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
        spoken = [text for item in turn.items if item.type == "user" and (text := message_text(item).strip())]
        if spoken:
            self._wish = one_line(spoken[-1], MAX_WISH_BYTES)
            self._told += spoken
        if turn.siblings and spoken:
            words = f"the user went back and asked anew: {spoken[0]}"
            _put_newest(
                self._answers, SessionAction(key=f"anew {turn.id}", text=_short(words), turn_id=turn.id)
            )
        for item in turn.items:
            if item.type == "plan":
                self._plan = _steps(item.entries or [])
            elif item.type == "tool":
                self._call(item, turn.id)
        self._stopped = _how_it_stopped(turn)
        self._turns += 1
        self._up_to = turn.id

    def course(self, summary: Summary) -> SessionState:
        return SessionState(
            summary=summary,
            wish=self._wish,
            stopped=self._stopped,
            rules=standing.collect_standing_instructions(
                [*self._known.rules, *self._told], estimate_tokens, RULES_TOKENS
            ),
            plan=self._plan,
            git=list(self._git.values())[-MAX_ACTIONS:],
            answers=list(self._answers.values())[-MAX_ACTIONS:],
            refusals=list(self._refusals.values())[-MAX_ACTIONS:],
            looks=list(self._looks.values())[-MAX_VISITS:],
            turns=self._turns,
            up_to=self._up_to,
        )

    def _call(self, item: Item, turn: str) -> None:
        call = call_name(item)
        if item.status == "denied":
            why = one_line(_output(item), MAX_ACTION_BYTES)
            _put_newest(
                self._refusals,
                SessionAction(key=call, text=_short(f"`{call}`: {why}"), turn_id=turn, parts=[call]),
            )
        if item.status != "completed":
            return
        # The same call was allowed later, so what it was refused for no longer holds.
        self._refusals.pop(call, None)
        if item.name == "ask_user":
            self._answer(item, turn)
        if not item.exit_code:
            self._operations(item, turn)
        for place, page in _visited_places(item):
            self._looks.pop(place, None)
            self._looks[place] = FileVisit(place=place, turn_id=turn, page=page)

    def _answer(self, item: Item, turn: str) -> None:
        """Add a question of the model and the user's choice."""
        question = one_line(str((item.input or {}).get("question") or ""), MAX_ACTION_BYTES // 2)
        answer = one_line(_output(item), MAX_ACTION_BYTES // 2)
        # By the question: an answer that the user changed later replaces the earlier one.
        parts = [question, answer]
        _put_newest(
            self._answers, SessionAction(key=question, text=f"{question} {answer}", turn_id=turn, parts=parts)
        )

    def _operations(self, item: Item, turn: str) -> None:
        for command in _commands(item.input):
            for words in git.git_operations(command):
                done = git.parse_commit(_output(item)) if words[1] == "commit" else None
                spelled = " ".join(words)
                text = _short(f"{spelled} → {done}" if done else spelled)
                parts = [one_line(word, MAX_PART_BYTES) for word in words[:MAX_PARTS]]
                _put_newest(
                    self._git,
                    SessionAction(key=f"{spelled} {done or ''}", text=text, turn_id=turn, parts=parts),
                )


def _put_newest(deeds: dict[str, SessionAction], deed: SessionAction) -> None:
    """Replace the older action of the same key, and move it to the end."""
    deeds.pop(deed.key, None)
    deeds[deed.key] = deed


def _steps(entries: Sequence[JsonObject]) -> list[PlanStep]:
    return [
        PlanStep(text=text, status=str(entry.get("status") or "pending"))
        for entry in entries[:MAX_STEPS]
        if isinstance(content := entry.get("content"), str) and (text := one_line(content, MAX_ACTION_BYTES))
    ]


def _how_it_stopped(turn: Turn) -> str:
    if turn.status not in _STOPPED:
        return ""
    why = f": {turn.error.message}" if turn.error and turn.error.message else ""
    return _short(f"the last turn was {_STOPPED[turn.status]}{why}".replace("was failed", "failed"))


def _commands(given: Any) -> Iterable[str]:
    """Return the command lines of a call with one command or several."""
    if not isinstance(given, dict):
        return
    several = given.get("commands")
    for one in [given, *(several if isinstance(several, list) else [])]:
        command = one.get("command") if isinstance(one, dict) else one
        if isinstance(command, str):
            yield command


def _visited_places(item: Item) -> Iterable[tuple[str, bool]]:
    """Return the files that a call read or changed, and the page that it fetched."""
    if item.kind == "fetch":
        address = (item.input or {}).get("url") if isinstance(item.input, dict) else None
        if isinstance(address, str) and address:
            yield one_line(address, MAX_PATH_BYTES), True
    # The locations of a search are its hits: nobody has read those files yet.
    if item.kind == "search":
        return
    for place in [*(item.locations or []), *(item.changes or [])][:MAX_VISITS]:
        path = place.get("path")
        if isinstance(path, str) and path and len(path.encode(errors="replace")) <= MAX_PATH_BYTES:
            yield " ".join(clean_text(path).split()), False


def _output(item: Item) -> str:
    return item.output_text[:MAX_OUTPUT]


def _short(text: str) -> str:
    return one_line(text, MAX_ACTION_BYTES)
