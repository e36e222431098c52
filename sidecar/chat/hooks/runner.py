"""Runs the hooks of a chat for an event: concurrently, each run journalled, the outputs combined to one decision.

A run is journalled before it starts and after it ends, so that no hook is asked twice about the same call, not even
when the sidecar was killed in between and the turn continues. Then the journalled answer counts; a run without an
end counts as one whose answer is unknown.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio
import msgspec

from ...model.chats import EffectiveConfig
from ...model.events import NewEvent
from ...policy.hooks import Hook, HookDecision, HookEventName, HookOutput, combine_outputs, parse_output
from ...policy.hooks.answers import NO_DECISION, broken
from ...policy.hooks.naming import ClaudeCall, TooManyCalls, from_claude_input, matcher_names
from ...policy.hooks.payloads import (
    HookContext,
    HookPayload,
    ToolUse,
    calls_for_hook,
    event_payload,
    tool_payload,
)
from ...store.tables.hooks import HookRecord
from ...system import process_tree
from ...system.filter_process import FilterOutput, ask, shell
from ...system.programs import outside_path
from ...system.redact import redact_text
from ..journal.running_turn import new_id
from .files import HookFiles, Matchers

if TYPE_CHECKING:
    from ...model.chats import Chat
    from ..services.services import ChatServices
    from .locations import HookLocation

logger = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 64 * 1024
"""Bytes of a hook's output. A decision has a few hundred; longer output is a mistake, and is not read to its end."""

MAX_PARALLEL_HOOKS = 8
"""Hooks that run at once for one event; the others wait."""

RecordRun = Callable[..., Awaitable[Any]]
"""Commits the events that it is given."""


class HookEvent(msgspec.Struct, frozen=True):
    """An event that hooks are asked about. Matchers are tried on `names`; when that is empty, every hook of the
    event runs.

    `limit_s` bounds every hook, when less time is left than its own timeout.
    """

    event: HookEventName
    names: tuple[str, ...] = ()
    fields: Mapping[str, object] = {}
    use: ToolUse | None = None
    turn_id: str | None = None
    item_id: str | None = None
    limit_s: float | None = None


class _HookRun(msgspec.Struct, frozen=True):
    """One hook with its input. `key` is the same for the same question, in every process."""

    hook: Hook
    payload: HookPayload
    view: ClaudeCall | None
    key: str
    id: str


class _HookResult(msgspec.Struct, frozen=True):
    run: _HookRun
    answer: HookOutput
    exit: int | None = None
    ms: int | None = None
    again: bool = False
    """Whether it was answered before, and the answer is only repeated."""


class HookEnvironment(Protocol):
    """The chat whose hooks run."""

    services: ChatServices

    @property
    def chat(self) -> Chat: ...
    @property
    def config(self) -> EffectiveConfig: ...
    def hook_locations(self) -> list[HookLocation]: ...


class HookRunner:
    """Runs the hooks of one chat."""

    def __init__(self, environment: HookEnvironment) -> None:
        self._environment = environment
        self._files = HookFiles()
        self._matchers = Matchers()
        self._session_start: Literal["resume", "compact"] | None = "resume"
        """How the session starts with the next turn; None once it has started."""
        self._recorded: dict[str, list[HookOutput]] = {}
        """The recorded answers for interrupted calls of the turn that is continued, by the question's key."""

    async def hooks(self) -> list[Hook]:
        """All hooks of the chat's files."""
        environment, project = self._environment, self._environment.chat.project_path
        # Asked at each event: trust may end during a turn, and then the next hook does not run.
        trusted = project is not None and environment.services.is_trusted(project)
        return await self._files.read(environment.hook_locations(), trusted=trusted)

    def begin_session(self, *, first: bool) -> str | None:
        """How the session starts with this turn; None when it has started before."""
        begin_session, self._session_start = self._session_start, None
        return "startup" if begin_session == "resume" and first else begin_session

    def end_session(self) -> bool:
        """End the session; return whether one had started. A later turn starts another."""
        begun, self._session_start = self._session_start != "resume", "resume"
        return begun

    def compaction_ended(self) -> None:
        """Run the session-start hooks again: what they added may have been compacted away."""
        if self._session_start is None:
            self._session_start = "compact"

    async def ask(self, hook_event: HookEvent, record: RecordRun) -> HookDecision:
        """Run the hooks for an event and combine their decisions; `NO_DECISION` when there are none for it."""
        wanted = (hook_event.event, "") if hook_event.event == "PreToolUse" else (hook_event.event,)
        # An event of "" belongs to a file that cannot be read: it may have held a guard, so a call of a tool
        # asks.
        hooks = [hook for hook in await self.hooks() if hook.trusted and hook.event in wanted]
        if not hooks:
            return NO_DECISION
        select = await self._matchers.select(hooks, hook_event.names)
        runs = self._plan_runs(select, hook_event)
        if not runs:
            return NO_DECISION
        ended = await self._run_all(runs, hook_event, record)
        return combine_outputs(
            [(one.run.hook.name or one.run.hook.file, one.answer) for one in ended], hook_event.event
        )

    def replay_answers(self, answered: dict[str, list[HookOutput]]) -> None:
        """Use these answers instead of asking again, in a turn that continues after a crash."""
        self._recorded = answered

    def scene(self) -> HookContext:
        chat = self._environment.chat
        return HookContext(chat.key.session_id, self.folder, self._environment.config.mode)

    @property
    def folder(self) -> str:
        """The working folder of hooks: the project, or else the home folder."""
        return self._environment.chat.project_path or os.path.expanduser("~")

    def _plan_runs(self, select: Sequence[tuple[Hook, str]], hook_event: HookEvent) -> list[_HookRun]:
        """The runs, one for each view of the call; the same command on the same input runs once."""
        runs: dict[str, _HookRun] = {}
        for hook, name in select:
            for number, (asked, view) in enumerate(self._views(hook, name, hook_event)):
                payload = {} if asked.problem else self._payload(hook_event, view)
                key = _question_key(asked, hook_event, number, payload)
                runs.setdefault(key, _HookRun(asked, payload, view, key, new_id("hr")))
        return list(runs.values())

    def _views(self, hook: Hook, name: str, hook_event: HookEvent) -> list[tuple[Hook, ClaudeCall | None]]:
        """The call in the hook's terms, which may be several calls; a hook that cannot be asked carries the reason."""
        if hook_event.use is None or hook.problem:
            return [(hook, None)]
        try:
            return [(hook, view) for view in calls_for_hook(hook, name, hook_event.use, self.folder)]
        except TooManyCalls as many:
            return [(msgspec.structs.replace(hook, problem=str(many)), None)]

    def _payload(self, hook_event: HookEvent, view: ClaudeCall | None) -> HookPayload:
        if hook_event.use is None or view is None:
            return event_payload(hook_event.event, self.scene(), **hook_event.fields)
        return tool_payload(hook_event.event, self.scene(), hook_event.use, view)

    async def _run_all(
        self, runs: Sequence[_HookRun], hook_event: HookEvent, record: RecordRun
    ) -> list[_HookResult]:
        # Taken before anything runs: each recorded answer counts once.
        known = {run.key: self._take_recorded(run.key) for run in runs}
        new = [run for run in runs if known[run.key] is None and not run.hook.problem]
        ended = {
            run.key: _HookResult(
                run, known[run.key] or broken(run.hook.problem or ""), again=not run.hook.problem
            )
            for run in runs
            if run not in new
        }
        if new:
            # Journalled before the first one starts: after a crash nobody can tell whether a hook had effects, so
            # it must not run again.
            await record(*[_started_event(run, hook_event) for run in new])
        limiter = anyio.CapacityLimiter(MAX_PARALLEL_HOOKS)

        async def one(run: _HookRun) -> None:
            async with limiter:
                ended[run.key] = await self._run_one(run, hook_event)

        try:
            async with anyio.create_task_group() as tasks:
                for run in new:
                    tasks.start_soon(one, run)
        # Also on cancellation: a run that is journalled as started needs an end, and the
        # answers of those that have ended must not be lost.
        except BaseException:
            with anyio.CancelScope(shield=True):
                cut = [
                    _HookResult(run, broken("the turn ended before it did"))
                    for run in new
                    if run.key not in ended
                ]
                await record(*[_ran_event(one, hook_event) for one in [*ended.values(), *cut]])
            raise
        in_order = [ended[run.key] for run in runs]
        await record(*[_ran_event(one, hook_event) for one in in_order])
        return in_order

    def _take_recorded(self, key: str) -> HookOutput | None:
        """The answer to this question from before a crash; each recorded answer is used once."""
        answers = self._recorded.get(key)
        return answers.pop(0) if answers else None

    async def _run_one(self, run: _HookRun, hook_event: HookEvent) -> _HookResult:
        start = anyio.current_time()
        seconds = min(run.hook.seconds, hook_event.limit_s or run.hook.seconds)
        try:
            said = await ask(
                self._argv(run.hook),
                json.dumps(run.payload).encode(),
                folder=self.folder,
                environ=self._environ(run.hook),
                key=f"{run.id}.hook",
                seconds=seconds,
                most=MAX_OUTPUT_BYTES,
            )
        except OSError as error:
            return _HookResult(
                run, broken(f"it could not be started: {error.strerror or error}"), ms=_elapsed_ms(start)
            )
        answer = self._with_own_input(run, hook_event, _parse_output(hook_event.event, said, seconds))
        return _HookResult(run, answer, said.code, _elapsed_ms(start))

    def _argv(self, hook: Hook) -> list[str]:
        environ = self._environ(hook)
        return [shell(environ), "-c", hook.command] if hook.args is None else [hook.command, *hook.args]

    def _environ(self, hook: Hook) -> dict[str, str]:
        return {
            **process_tree.clean_environment(os.environ),
            "PATH": outside_path(os.environ.get("PATH", os.defpath)),
            "CLAUDE_PROJECT_DIR": self.folder,
            "CLAUDE_PLUGIN_ROOT": hook.root,
            "SIDECAR_PROJECT_DIR": self.folder,
        }

    def _with_own_input(self, run: _HookRun, hook_event: HookEvent, answer: HookOutput) -> HookOutput:
        """The answer with a changed input in our own names; one that cannot be converted counts as no decision."""
        if answer.updated is None or hook_event.use is None or run.view is None:
            return answer
        use, view = hook_event.use, run.view
        if not view.whole:
            return broken("it wants to change a part of a call, which cannot be done")
        whole = {**view.input, **answer.updated}
        translated = view.tool in matcher_names(use.tool)[1:]
        changed = from_claude_input(use.tool, whole, use.input, self.folder) if translated else whole
        if changed is None:
            return broken("`updatedInput` is not an input of this tool")
        return msgspec.structs.replace(answer, updated=None if changed == use.input else changed)


def recorded_answers(
    records: Sequence[HookRecord], interrupted: Sequence[str]
) -> dict[str, list[HookOutput]]:
    """The answers that the journal has for calls that a crash interrupted, by the question's key.

    A run that started and has no end is included: its answer is unknown.
    """
    begun: dict[str, tuple[str, HookOutput]] = {}
    for record in records:
        if record.event != "PreToolUse" or record.item_id not in interrupted:
            continue
        lost = broken("the sidecar ended before it did")
        answer = msgspec.convert(record.answer or {}, HookOutput) if record.has_ended else lost
        begun[record.run_id] = (record.key, answer)
    found: dict[str, list[HookOutput]] = {}
    for key, answer in begun.values():
        found.setdefault(key, []).append(answer)
    return found


def _parse_output(event: HookEventName, said: FilterOutput, seconds: float) -> HookOutput:
    if said.text is None:
        return broken(f"it said more than {MAX_OUTPUT_BYTES} bytes")
    if said.late:
        return broken(f"it took longer than {seconds:g} s")
    text, complaint = _redact_keys(said.text), _redact_keys(said.complaint)
    return parse_output(event, said.code, text, complaint)


def _redact_keys(data: bytes) -> bytes:
    """Remove the keys that this process knows, in case a hook printed one."""
    return redact_text(data.decode(errors="replace")).encode(errors="replace")


def _question_key(hook: Hook, hook_event: HookEvent, number: int, payload: HookPayload) -> str:
    """The key of a question: which command is asked, about which part of which call, with which input."""
    use = hook_event.use
    about = [use.tool, use.input] if use else [hook_event.fields]
    spelled_as = payload.get("tool_name", "")
    whole = [hook_event.event, hook.whole, hook.problem, number, spelled_as, about]
    return sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()[:32]


def _started_record(run: _HookRun, hook_event: HookEvent) -> HookRecord:
    return HookRecord(
        run_id=run.id,
        key=run.key,
        event=hook_event.event,
        hook_id=run.hook.id,
        name=redact_text(run.hook.name),
        file=run.hook.file,
        item_id=hook_event.item_id,
    )


def _started_event(run: _HookRun, hook_event: HookEvent) -> NewEvent:
    return NewEvent("hook.started", _started_record(run, hook_event), hook_event.turn_id)


def _ran_event(ended: _HookResult, hook_event: HookEvent) -> NewEvent:
    answer = ended.answer
    record = msgspec.structs.replace(
        _started_record(ended.run, hook_event),
        decision="failed" if answer.broken else answer.effect,
        answer=msgspec.to_builtins(answer),
        exit=ended.exit,
        ms=ended.ms,
        problem=answer.problem,
        again=ended.again,
    )
    return NewEvent("hook.ran", record, hook_event.turn_id)


def _elapsed_ms(start: float) -> int:
    return int((anyio.current_time() - start) * 1000)
