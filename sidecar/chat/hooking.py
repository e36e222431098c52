"""Asks the hooks of a chat when something happens: runs them side by side, journals each, says what they mean together.

A run is journalled before it begins and when it has ended, so that no hook is asked twice about the same call: not when
the sidecar was killed in between and the turn goes on either. Then what the journal says stands, and of a run that
never came to an end nobody knows what it would have said.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec

from ..model.events import NewEvent
from ..policy.hooks import Answer, Event, Hook, Verdict, answer_of, joined
from ..policy.hooks.answers import NOTHING, broken
from ..policy.hooks.naming import TooMany, View, back, names_of
from ..policy.hooks.payloads import Scene, ToolUse, of_tool, spelled, told
from ..system import children
from ..system.dialogue import Said, ask, shell
from ..system.redact import redacted
from .hook_files import HookFiles, Matchers
from .running import new_id

if TYPE_CHECKING:
    from .desk import Desk

logger = logging.getLogger(__name__)

MAX_SAID = 64 * 1024
"""Bytes of what a hook says. A decision has a few hundred; what is longer is a mistake, and is not read to its end."""

SIDE_BY_SIDE = 8
"""Hooks that run at once for one occasion; the others wait for them."""

Record = Callable[..., Awaitable[Any]]
"""Commits the events that it is given."""


class Occasion(msgspec.Struct, frozen=True):
    """Something that hooks are asked about. `names` are what matchers are tried on; none: every hook of the event.

    `limit_s` bounds every hook, where less time is left than it may take.
    """

    event: Event
    names: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    use: ToolUse | None = None
    turn_id: str | None = None
    item_id: str | None = None
    limit_s: float | None = None


class _Run(msgspec.Struct, frozen=True):
    """One hook with what it reads. `key` is the same for the same question, in whichever process."""

    hook: Hook
    payload: dict[str, Any]
    view: View | None
    key: str
    id: str


class _Ended(msgspec.Struct, frozen=True):
    run: _Run
    answer: Answer
    exit: int | None = None
    ms: int | None = None
    again: bool = False
    """Whether it was asked before, and is only repeated."""


class Hooking:
    """One chat's."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._files = HookFiles()
        self._matchers = Matchers()
        self._begins: Literal["resume", "compact"] | None = "resume"
        """How the session begins with the next turn; None once it has."""
        self._answered: dict[str, list[Answer]] = {}
        """What interrupted calls of the turn that is gone on with were told, by the question."""

    async def hooks(self) -> list[Hook]:
        """All hooks of the chat's files."""
        desk, project = self._desk, self._desk.chat.project_path
        trusted = project is not None and desk.workshop.is_trusted(project)
        return await self._files.read(desk.hook_places(), trusted=trusted)

    def begins(self, *, first: bool) -> str | None:
        """How the session begins with the turn that does; None when it has begun before."""
        begins, self._begins = self._begins, None
        return "startup" if begins == "resume" and first else begins

    def ends(self) -> bool:
        """Whether a session that has begun ends now; what comes later begins another."""
        begun, self._begins = self._begins != "resume", "resume"
        return begun

    def compacted(self) -> None:
        """What a hook has told at the beginning may be gone from the window."""
        if self._begins is None:
            self._begins = "compact"

    async def ask(self, occasion: Occasion, record: Record) -> Verdict:
        """What the hooks say; nothing when there are none for it."""
        wanted = (occasion.event, "") if occasion.event == "PreToolUse" else (occasion.event,)
        hooks = [hook for hook in await self.hooks() if hook.trusted and hook.event in wanted]
        if not hooks:
            return NOTHING
        selected = await self._matchers.selected(hooks, occasion.names)
        runs = self._runs(selected, occasion)
        if not runs:
            return NOTHING
        ended = await self._ended(runs, occasion, record)
        return joined([(one.run.hook.name or one.run.hook.file, one.answer) for one in ended], occasion.event)

    def gone_on_with(self, answered: dict[str, list[Answer]]) -> None:
        """A turn goes on that a crash has interrupted: what was answered before is not asked again."""
        self._answered = answered

    def scene(self) -> Scene:
        chat = self._desk.chat
        return Scene(chat.key.session_id, self.folder, str(self._desk.config["mode"]))

    @property
    def folder(self) -> str:
        """Where hooks run: in the project, or else at home."""
        return self._desk.chat.project_path or os.path.expanduser("~")

    def _runs(self, selected: Sequence[tuple[Hook, str]], occasion: Occasion) -> list[_Run]:
        """The runs, one for each view of the call; the same command on the same input runs once."""
        runs: dict[str, _Run] = {}
        for hook, name in selected:
            for number, (asked, view) in enumerate(self._views(hook, name, occasion)):
                payload = {} if asked.problem else self._payload(occasion, view)
                key = _key(asked, occasion, number, payload)
                runs.setdefault(key, _Run(asked, payload, view, key, new_id("hr")))
        return list(runs.values())

    def _views(self, hook: Hook, name: str, occasion: Occasion) -> list[tuple[Hook, View | None]]:
        """The call as the hook knows it, in parts where it is several there; a hook that cannot be asked says why."""
        if occasion.use is None or hook.problem:
            return [(hook, None)]
        try:
            return [(hook, view) for view in spelled(hook, name, occasion.use, self.folder)]
        except TooMany as many:
            return [(msgspec.structs.replace(hook, problem=str(many)), None)]

    def _payload(self, occasion: Occasion, view: View | None) -> dict[str, Any]:
        if occasion.use is None or view is None:
            return told(occasion.event, self.scene(), **occasion.fields)
        return of_tool(occasion.event, self.scene(), occasion.use, view)

    async def _ended(self, runs: Sequence[_Run], occasion: Occasion, record: Record) -> list[_Ended]:
        known = {run.key: self._taken(run.key) for run in runs}
        new = [run for run in runs if known[run.key] is None and not run.hook.problem]
        ended = {
            run.key: _Ended(run, known[run.key] or broken(run.hook.problem or ""), again=not run.hook.problem)
            for run in runs
            if run not in new
        }
        if new:
            await record(*[_started(run, occasion) for run in new])
        limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)

        async def one(run: _Run) -> None:
            async with limiter:
                ended[run.key] = await self._one(run, occasion)

        try:
            async with anyio.create_task_group() as tasks:
                for run in new:
                    tasks.start_soon(one, run)
        except BaseException:
            with anyio.CancelScope(shield=True):
                cut = [
                    _Ended(run, broken("the turn ended before it did")) for run in new if run.key not in ended
                ]
                await record(*[_ran(one, occasion) for one in [*ended.values(), *cut]])
            raise
        in_order = [ended[run.key] for run in runs]
        await record(*[_ran(one, occasion) for one in in_order])
        return in_order

    def _taken(self, key: str) -> Answer | None:
        """What this question was answered before a crash, once for each time that it was asked."""
        answers = self._answered.get(key)
        return answers.pop(0) if answers else None

    async def _one(self, run: _Run, occasion: Occasion) -> _Ended:
        start = anyio.current_time()
        seconds = min(run.hook.seconds, occasion.limit_s or run.hook.seconds)
        try:
            said = await ask(
                self._argv(run.hook),
                json.dumps(run.payload).encode(),
                folder=self.folder,
                environ=self._environ(run.hook),
                key=f"{run.id}.hook",
                seconds=seconds,
                most=MAX_SAID,
            )
        except OSError as error:
            return _Ended(run, broken(f"it could not be started: {error.strerror or error}"), ms=_ms(start))
        answer = self._ours(run, occasion, _answer(occasion.event, said, seconds))
        return _Ended(run, answer, said.code, _ms(start))

    def _argv(self, hook: Hook) -> list[str]:
        environ = self._environ(hook)
        return [shell(environ), "-c", hook.command] if hook.args is None else [hook.command, *hook.args]

    def _environ(self, hook: Hook) -> dict[str, str]:
        return {
            **children.clean_environment(os.environ),
            "CLAUDE_PROJECT_DIR": self.folder,
            "CLAUDE_PLUGIN_ROOT": hook.root,
            "SIDECAR_PROJECT_DIR": self.folder,
        }

    def _ours(self, run: _Run, occasion: Occasion, answer: Answer) -> Answer:
        """The answer with a changed input in our own names; one that cannot be read so is as good as none."""
        if answer.updated is None or occasion.use is None or run.view is None:
            return answer
        use, view = occasion.use, run.view
        if not view.whole:
            return broken("it wants to change a part of a call, which cannot be done")
        changed: dict[str, Any] | None = {**view.input, **answer.updated}
        assert changed is not None
        if view.tool in names_of(use.tool)[1:]:
            changed = back(use.tool, changed, use.input, self.folder)
        if changed is None:
            return broken("`updatedInput` is not an input of this tool")
        return msgspec.structs.replace(answer, updated=None if changed == use.input else changed)


def replays(
    events: Sequence[tuple[str, dict[str, Any]]], interrupted: Sequence[str]
) -> dict[str, list[Answer]]:
    """What the journal says was answered before calls that a crash has interrupted, by the question.

    A run that was begun and has no end is answered too: nobody knows how.
    """
    begun: dict[str, tuple[str, Answer]] = {}
    for type, data in events:
        if data["event"] != "PreToolUse" or data.get("itemId") not in interrupted:
            continue
        lost = broken("the sidecar ended before it did")
        answer = msgspec.convert(data.get("answer") or {}, Answer) if type == "hook.ran" else lost
        begun[data["runId"]] = (data["key"], answer)
    found: dict[str, list[Answer]] = {}
    for key, answer in begun.values():
        found.setdefault(key, []).append(answer)
    return found


def _answer(event: Event, said: Said, seconds: float) -> Answer:
    if said.text is None:
        return broken(f"it said more than {MAX_SAID} bytes")
    if said.late:
        return broken(f"it took longer than {seconds:g} s")
    text, complaint = _hidden(said.text), _hidden(said.complaint)
    return answer_of(event, said.code, text, complaint)


def _hidden(data: bytes) -> bytes:
    """Without the keys that this process knows, should a hook have found one."""
    return redacted(data.decode(errors="replace")).encode(errors="replace")


def _key(hook: Hook, occasion: Occasion, number: int, payload: dict[str, Any]) -> str:
    """The same question has the same key: what is asked, of which command, about which part of which call."""
    use = occasion.use
    about = [use.tool, use.input] if use else [occasion.fields]
    spelled_as = payload.get("tool_name", "")
    whole = [occasion.event, hook.whole, hook.problem, number, spelled_as, about]
    return sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()[:32]


def _about(run: _Run, occasion: Occasion) -> dict[str, Any]:
    made = {
        "runId": run.id,
        "key": run.key,
        "event": occasion.event,
        "hookId": run.hook.id,
        "name": redacted(run.hook.name),
        "file": run.hook.file,
        "itemId": occasion.item_id,
    }
    return {name: value for name, value in made.items() if value is not None}


def _started(run: _Run, occasion: Occasion) -> NewEvent:
    return NewEvent("hook.started", _about(run, occasion), occasion.turn_id)


def _ran(ended: _Ended, occasion: Occasion) -> NewEvent:
    answer = ended.answer
    data: dict[str, Any] = {
        **_about(ended.run, occasion),
        "decision": "failed" if answer.broken else answer.effect,
        "answer": msgspec.to_builtins(answer),
    }
    more = {"exit": ended.exit, "ms": ended.ms, "problem": answer.problem, "again": ended.again or None}
    return NewEvent(
        "hook.ran", {**data, **{k: v for k, v in more.items() if v is not None}}, occasion.turn_id
    )


def _ms(start: float) -> int:
    return int((anyio.current_time() - start) * 1000)
