"""What one tool call may touch, and the steps around it: redirect, hooks, permission, writing, storing.

`run_tool_call` takes these steps in order; a tool sees the part that `ToolContext` names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import anyio.to_thread
import msgspec

from ...model import JsonObject
from ...model.content import InputOutcome
from ...model.failures import Failure
from ...model.files import Change
from ...policy.decide import HOST_ASKED, HookAdvice
from ...policy.denials import denial
from ...policy.hooks import HookDecision
from ...policy.hooks.answers import NO_DECISION
from ...policy.hooks.naming import matcher_names
from ...policy.hooks.payloads import ToolUse
from ...policy.routing import redirect as find_redirect
from ...providers.base import ToolCall
from ...system.lazy import lazy_module
from ...tools.base import (
    Edit,
    Intent,
    OutputLibrary,
    Permission,
    PlanEntry,
    Tool,
    ToolError,
    ToolInput,
    ToolOutcome,
    UserAnswer,
)
from ...tools.toolbox import StoredOutput
from ...workspace.names import RealNames
from ...workspace.paths import ReadFilter, Workspace
from ..hooks import messages
from ..hooks.runner import HookEvent
from ..journal.running_turn import MAX_TITLE, RunningTurn, new_id
from ..services.client_app import AddressMembers, AppToolCall, BufferRequest, InputAnswer, InputRequest
from . import edits as editing
from .environment import ToolEnvironment, absolute_path, call_key
from .output_index import OutputIndex, store_output
from .output_media import StoredMedia, store_media
from .permissions import PermissionChecker, PermissionContext

if TYPE_CHECKING:
    from ..services.direct_calls import DirectCall
    from . import buffers
else:
    buffers = lazy_module("sidecar.chat.tool_calls.buffers")

logger = logging.getLogger(__name__)

MAX_REDIRECTED = 500
"""Calls of a chat that are remembered as redirected; one that is forgotten is redirected again."""

BUFFER_S = 2.0
"""How long an app may take to send the text of an editor buffer; after that the file on disk counts."""

T = TypeVar("T")


class HookedInput(msgspec.Struct, frozen=True):
    """The input of a call after its hooks, or the outcome that they decided. `note` says what they changed."""

    input: JsonObject
    outcome: ToolOutcome | None = None
    note: str = ""


class CallContext:
    """The `ToolContext` of one call of a turn, and the steps around the call."""

    def __init__(
        self,
        environment: ToolEnvironment,
        turn: RunningTurn,
        call: ToolCall,
        direct: DirectCall | None = None,
    ) -> None:
        self._environment = environment
        self._services = environment.services
        self._direct = direct
        self._app = direct.app if direct else environment.services.app
        self._turn = turn
        self._call = call
        # A value: each change replaces it here and in the turn, so that crash closure finds the newest in the
        # journal.
        self._item = turn.item_of(call)
        self._changes: list[Change] = []
        self._hook_advice: HookAdvice | None = None
        self._refused_parts: dict[int, str] = {}
        self._workspace: Workspace | None = None
        self._hidden_files: Sequence[str] = ()
        self._approved_paths: dict[str, str] = {}
        """The real paths of the files that permission was requested for."""

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._environment.workspace()
        if self._workspace is None:
            raise ToolError("This chat has no project, so there are no files.")
        return self._workspace

    @property
    def library(self) -> OutputLibrary:
        if not self._environment.settings.values.index.enabled:
            raise ToolError("The index is switched off.")
        return OutputIndex(self._environment, self._item, self.workspace)

    @property
    def call_key(self) -> str:
        return call_key(self._environment.chat, self._item)

    @property
    def writes_buffers(self) -> bool:
        return self._app.can("buffer_writes")

    @property
    def refused(self) -> Mapping[int, str]:
        return self._refused_parts

    @property
    def hidden_files(self) -> Sequence[str]:
        return self._hidden_files

    async def read_filter(self, granted: str | None = None) -> ReadFilter:
        return (await self._environment.read_rules(granted)).skip_reason

    def seen(self, path: str) -> str | None:
        return self._environment.seen(self.workspace, path)

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)

    async def show(self, text: str) -> None:
        await self._turn.tool_output(self._call, text)
        if self._direct:
            await self._direct.show(text)

    async def plan(self, entries: list[PlanEntry]) -> None:
        await self._turn.plan(entries)

    async def ask(self, message: str, schema: JsonObject) -> UserAnswer | None:
        app, requests = self._app, self._services.requests
        if not app.can("input"):
            return None
        id = new_id("in")
        request = InputRequest(**self._address(), input_id=id, message=message, schema=schema)
        pending = requests.inputs.open(id)

        async def deliver() -> None:
            try:
                pending.answer(await app.ask_input(request))
            except Failure as failure:
                logger.warning("the app did not answer a question", extra={"error": failure.message})
                pending.answer(InputAnswer("cancel", by="policy"))

        async def wait_answered() -> InputAnswer:
            async with anyio.create_task_group() as tasks:
                # The answer may also come from another client by `input/answer`: whichever is first counts.
                tasks.start_soon(deliver)
                answer = await pending.wait_answered()
                tasks.cancel_scope.cancel()
            return answer

        async def record(answer: InputAnswer) -> InputOutcome:
            recorded = InputOutcome(input_id=id, action=answer.action, by=answer.by, values=answer.values)
            await self._turn.request_closed("input", id, recorded)
            return recorded

        await self._turn.request_opened("input", id, request)
        recorded = await pending.keep(wait_answered, record)
        requests.inputs.close(id, recorded)
        return UserAnswer(recorded.action, recorded.values or {})

    async def unsaved_text(self, path: str) -> str | None:
        app = self._app
        if not app.can("buffers"):
            return None
        key = self._environment.chat.key
        absolute = absolute_path(self.workspace, path)
        try:
            with anyio.fail_after(BUFFER_S):
                return await app.read_buffer(
                    BufferRequest(session_id=key.session_id, chat_id=key.chat_id, path=absolute)
                )
        # An app that does not answer must not block an edit: the file on disk counts then.
        except (Failure, TimeoutError):
            return None

    async def call_app(self, name: str, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        try:
            with anyio.fail_after(timeout_s):
                return await self._app.call_tool(
                    AppToolCall(**self._address(), name=name, arguments=arguments)
                )
        except TimeoutError:
            return ToolOutcome(f"The app did not answer within {timeout_s:g} s.", failed=True)

    async def ask_hooks_before(self, call: ToolCall, tool: Tool) -> HookedInput:
        """Hooks may deny the call, change its input, or advise on its permission."""
        verdict = await self._ask_hooks("PreToolUse", call.input)
        if verdict.stop:
            self._turn.stop()
        if verdict.effect == "deny":
            return HookedInput(call.input, messages.denied_outcome(verdict))
        self._hook_advice = messages.hook_advice(verdict)
        notes = [messages.context(verdict, self._environment.chat.epoch, self._item.id)]
        if verdict.updated is None:
            return HookedInput(call.input, note=notes[0])
        title = tool.title(ToolInput(verdict.updated))[:MAX_TITLE]
        self._item = messages.rewritten_item(self._item, verdict, title)
        await self._turn.tool_updated(self._call, self._item)
        notes.insert(0, messages.input_change_note(verdict))
        return HookedInput(verdict.updated, note="\n\n".join(filter(None, notes)))

    async def ask_hooks_after(self, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome, with what hooks add to it; a failed call has no such hooks."""
        if outcome.failed:
            return outcome
        verdict = await self._ask_hooks("PostToolUse", self._item.input or {}, outcome)
        if verdict.stop:
            self._turn.stop()
        return messages.with_feedback(outcome, verdict, self._environment.chat.epoch, self._item.id)

    async def request_permission(self, intent: Intent) -> Permission:
        settings, config, chat = self._environment.settings, self._environment.config, self._environment.chat
        if intent.edits or intent.shown:
            self._changes = await editing.plan_changes(
                self._services.store, intent.edits or intent.shown, settings.values.patches.max_bytes
            )
        context = PermissionContext(
            chat=chat.id,
            session_id=chat.key.session_id,
            chat_id=chat.key.chat_id,
            # The host of an agent has asked its user: the call counts as allowed where no rule or name stops it.
            mode=HOST_ASKED if self._direct and config.mode != "read-only" else config.mode,
            project=chat.project_path,
            folders=config.extra_folders,
            file_rules=settings.rules,
            expiry_s=settings.values.permissions.expiry or None,
            hook=self._hook_for(intent),
            names=await self._policy_names(intent),
            unhidden=await self._find_hidden(intent),
        )
        # Resolved before anybody is asked: while the dialog is open, a link may be exchanged.
        self._approved_paths |= await self.block(self._real_paths, intent)
        checker = PermissionChecker(self._services.store, self._app, self._services.requests.permissions)
        verdicts = await checker.check(context, self._turn, self._item, intent, self._changes)
        if all(verdict.by_user for verdict in verdicts if verdict.allowed):
            self._hidden_files = ()
        if not intent.parts:
            return verdicts[0]
        self._refused_parts = {
            at: verdict.words for at, verdict in enumerate(verdicts) if not verdict.allowed
        }
        allowed = [verdict for verdict in verdicts if verdict.allowed]
        # Of a batch, what was permitted runs; the others are reported by their reason.
        if allowed and not self._turn.stopped():
            return Permission(True, "\n".join(dict.fromkeys(filter(None, (one.words for one in allowed)))))
        words = "\n".join(dict.fromkeys(self._refused_parts.values()))
        return Permission(False, words, next((one.denial for one in verdicts if not one.allowed), None))

    async def _find_hidden(self, intent: Intent) -> str | None:
        """Find the files that the sandbox hides from a command; return why a rule may not be enforced that way."""
        if intent.kind != "run":
            return None
        hidden = await self._environment.hidden_files()
        self._hidden_files = hidden.paths
        if hidden.paths and not (intent.sandbox and intent.sandbox.active):
            return "there is no sandbox"
        return hidden.problem

    async def _policy_names(self, intent: Intent) -> RealNames | None:
        """The names as the policy checks them: for an edit also by what runs outside of the sandbox."""
        names = self._names()
        if names is not None and intent.kind == "edit":
            names.note_outside(await self.block(self._environment.run_outside))
        return names

    def _names(self) -> RealNames | None:
        """The names of the project's files, resolved at the time of the call; None without a project."""
        return RealNames(self.workspace) if self._environment.config.project_path else None

    def _real_paths(self, intent: Intent) -> dict[str, str]:
        """Where the files of a plan are, so that no other file is written after permission was given."""
        names = self._names() if intent.edits else None
        found = {edit.path: names.absolute(edit.path) for edit in intent.edits} if names else {}
        return {path: real for path, real in found.items() if real is not None}

    def _hook_for(self, intent: Intent) -> HookAdvice | None:
        """The hook's decision. It has not seen the target of an HTTP redirect, so its `allow` does not count there.
        A part of a call that the user has allowed counts as allowed by a hook.
        """
        if intent.allowed_before and self._hook_advice is None:
            return HookAdvice("allow", "the user has allowed the call that this is a part of", "call")
        unseen = (
            intent.after is not None and self._hook_advice is not None and self._hook_advice.effect == "allow"
        )
        return None if unseen else self._hook_advice

    async def write_edits(self, edits: Sequence[Edit]) -> None:
        """Journal the intended changes, write them, and record them in the patch ledger."""
        changes = [msgspec.to_builtins(change) for change in self._changes]
        self._item = msgspec.structs.replace(self._item, changes=changes)
        await self._turn.tool_updated(self._call, self._item)
        with anyio.CancelScope(shield=True):
            # Shielded: a cancel between the write and its events would leave a changed file without a patch.
            try:
                await self._write(edits)
            except Failure:
                self._item = msgspec.structs.replace(self._item, changes=None)
                await self._turn.tool_updated(self._call, self._item)
                raise
            await self._turn.record(*editing.patch_events(self._turn.id, self._item, self._changes, edits))

    async def _write(self, edits: Sequence[Edit]) -> None:
        """Write all edits or none: those of unsaved text through the editor, then the others."""
        buffered = [edit for edit in edits if edit.in_buffer]
        key = self._environment.chat.key
        editor = buffers.EditorBuffers(self._app, key, self.workspace, self._approved_paths)
        await editor.write(buffered)
        try:
            rest = [edit for edit in edits if not edit.in_buffer]
            await editing.write_edits(self.workspace, rest, self._item.id, self._approved_paths)
        except Failure:
            await editor.restore(buffered)
            raise

    async def store_output(self, text: str, *, shown: bool, cut: bool, source: str | None) -> StoredOutput:
        """Store an output so that it can be found again. `shown`: the model asked to see this text; `cut`: even so it
        does not get all of it; `source`: the index's id for it, when the tool has stored it there."""
        return await store_output(self._environment, self._item, text, shown=shown, cut=cut, source=source)

    async def store_media(self, outcome: ToolOutcome) -> StoredMedia:
        """Check and store the images and audio of an outcome; the user gets a notice about those that are refused."""
        if not outcome.media:
            return StoredMedia()
        media = await store_media(self._services.store, outcome.media)
        if media.refused:
            await self._turn.note("notice", media.notice(self._item.id, self._call.name))
        return media

    async def redirect(self, call: ToolCall, names: Collection[str]) -> ToolOutcome | None:
        """The first time that a call would flood the window: the tools that avoid it, instead of running it."""
        routing = self._environment.settings.values.routing
        found = await self.block(find_redirect, call.name, call.input, self._size_of, routing, names)
        mark = msgspec.json.encode([call.name, call.input], order="sorted").decode()
        known = self._environment.redirected
        if found is None or mark in known:
            return None
        known[mark] = None
        # Dictionaries keep their order: the first key is the oldest.
        while len(known) > MAX_REDIRECTED:
            del known[next(iter(known))]
        reason = denial(found.code, found.message, instead=found.instead)
        return ToolOutcome(found.message, not_run=reason)

    def _size_of(self, path: str) -> int | None:
        """The size of a project file; None when it cannot be read."""
        try:
            return os.stat(self.workspace.real(path)).st_size
        except (Failure, ToolError, OSError):
            return None  # opening the file reports the error

    async def _ask_hooks(
        self,
        event: Literal["PreToolUse", "PostToolUse"],
        input: JsonObject,
        outcome: ToolOutcome | None = None,
    ) -> HookDecision:
        if not self._environment.has_hooks():
            return NO_DECISION
        tool, id = self._call.name, self._item.id
        done = (outcome.text, outcome.exit_code) if outcome else (None, None)
        hook_event = HookEvent(
            event, matcher_names(tool), use=ToolUse(id, tool, input, *done), turn_id=self._turn.id, item_id=id
        )
        verdict = await self._environment.hook_runner.ask(hook_event, self._turn.record)
        if verdict.messages:
            await self._turn.record(*messages.notice_events(verdict, self._turn.id))
        return verdict

    def _address(self) -> AddressMembers:
        key = self._environment.chat.key
        return {
            "session_id": key.session_id,
            "chat_id": key.chat_id,
            "turn_id": self._turn.id,
            "item_id": self._item.id,
        }
