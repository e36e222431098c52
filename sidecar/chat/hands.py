"""The hands of one call: what its tool may touch, and what happens around it: leave, writing, keeping."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread
import msgspec

from ..model.failures import Failure
from ..model.files import Change
from ..policy.decide import HookWord
from ..policy.hooks import Verdict as HookVerdict
from ..policy.hooks.answers import NOTHING
from ..policy.hooks.naming import names_of
from ..policy.hooks.payloads import ToolUse
from ..providers.base import ToolCall
from ..tools.base import Answer, Edit, Library, Need, Outcome, Tool, Verdict, Wrong
from ..tools.toolbox import Before, Kept
from ..workspace.paths import Workspace
from . import edits as editing
from . import hook_words
from .desk import Desk, call_key, place_of
from .hooking import Occasion
from .library import ChatLibrary, captured
from .permits import Ground, Permits
from .running import MAX_TITLE, RunningTurn, new_id

logger = logging.getLogger(__name__)

MAX_REDIRECTED = 500
"""Calls of a chat that are remembered as shown a better way; one that is forgotten is shown it again."""

BUFFER_S = 2.0
"""How long an app may take to say what its editor holds; then the file on disk counts."""

T = TypeVar("T")


class CallHands:
    """The toolbox's `Clerk` for one call of a turn."""

    def __init__(self, desk: Desk, turn: RunningTurn, call: ToolCall) -> None:
        self._desk = desk
        self._shop = desk.workshop
        self._turn = turn
        self._call = call
        self._item = turn.item_of(call)
        self._changes: list[Change] = []
        self._hook: HookWord | None = None
        self._refused: dict[int, str] = {}
        self._workspace: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._desk.workspace()
        if self._workspace is None:
            raise Wrong("This chat has no project, so there are no files.")
        return self._workspace

    @property
    def library(self) -> Library:
        if not self._desk.settings.index.enabled:
            raise Wrong("The index is switched off.")
        return ChatLibrary(self._desk, self._item, self.workspace)

    @property
    def call_key(self) -> str:
        return call_key(self._desk.chat, self._item)

    @property
    def refused(self) -> Mapping[int, str]:
        return self._refused

    def seen(self, path: str) -> str | None:
        return self._desk.seen(self.workspace, path)

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)

    async def show(self, text: str) -> None:
        await self._turn.tool_output(self._call, text)

    async def plan(self, entries: list[dict[str, Any]]) -> None:
        await self._turn.plan(entries)

    async def ask(self, message: str, schema: dict[str, Any]) -> Answer | None:
        app, requests = self._shop.app, self._shop.requests
        if not app.can("input"):
            return None
        id = new_id("in")
        request = {"inputId": id, **self._address(), "message": message, "schema": schema}
        waiting = requests.open(id)

        async def deliver() -> None:
            try:
                waiting.answer(_answer(await app.ask_input(request)))
            except Failure as failure:
                logger.warning("the app did not answer a question", extra={"error": failure.message})
                waiting.answer({"action": "cancel", "by": "policy"})

        await self._turn.request_opened("input", id, request)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver)
            answer = await waiting.answered()
            tasks.cancel_scope.cancel()
        recorded = {"inputId": id, "by": "user", **answer}
        with anyio.CancelScope(shield=True):
            await self._turn.request_closed("input", id, recorded)
        requests.close(id, recorded)
        return Answer(answer["action"], answer.get("values") or {})

    async def unsaved(self, path: str) -> str | None:
        app = self._shop.app
        if not app.can("buffers"):
            return None
        key = self._desk.chat.key
        place = place_of(self.workspace, path)
        try:
            with anyio.fail_after(BUFFER_S):
                answer = await app.read_buffer(
                    {"sessionId": key.session_id, "chatId": key.chat_id, "path": place}
                )
        except (Failure, TimeoutError):
            return None
        text = answer.get("text")
        return text if isinstance(text, str) else None

    async def call_app(self, name: str, arguments: dict[str, Any], timeout_s: float) -> Outcome:
        try:
            with anyio.fail_after(timeout_s):
                answer = await self._shop.app.call_tool(
                    {**self._address(), "name": name, "arguments": arguments}
                )
        except TimeoutError:
            return Outcome(f"The app did not answer within {timeout_s:g} s.", failed=True)
        return _app_outcome(answer)

    async def before(self, call: ToolCall, tool: Tool, names: Collection[str]) -> Before:
        redirected = await self._redirected(call, names)
        if redirected:
            return Before(call.input, redirected)
        verdict = await self._ask_hooks("PreToolUse", call.input)
        if verdict.stop:
            self._turn.stop()
        if verdict.effect == "deny":
            return Before(call.input, hook_words.refused(verdict))
        self._hook = hook_words.word(verdict)
        notes = [hook_words.context(verdict, self._desk.chat.epoch, self._item.id)]
        if verdict.updated is None:
            return Before(call.input, note=notes[0])
        title = tool.title(verdict.updated)[:MAX_TITLE]
        self._item = hook_words.rewritten(self._item, verdict, title)
        await self._turn.tool_updated(self._call, self._item)
        notes.insert(0, hook_words.note_of_change(verdict))
        return Before(verdict.updated, note="\n\n".join(filter(None, notes)))

    async def after(self, outcome: Outcome) -> Outcome:
        if outcome.failed:
            return outcome
        verdict = await self._ask_hooks("PostToolUse", self._item.input or {}, outcome)
        if verdict.stop:
            self._turn.stop()
        return hook_words.with_feedback(outcome, verdict, self._desk.chat.epoch, self._item.id)

    async def leave(self, need: Need) -> Verdict:
        settings, config, chat = self._desk.settings, self._desk.config, self._desk.chat
        if need.edits:
            self._changes = await editing.planned(self._shop.store, need.edits, settings.max_patch_bytes)
        ground = Ground(
            chat=chat.id,
            session_id=chat.key.session_id,
            chat_id=chat.key.chat_id,
            mode=config["mode"],
            project=chat.project_path,
            folders=config.get("extraFolders") or (),
            file_rules=settings.rules,
            expiry_s=settings.expiry_s,
            hook=self._hook_for(need),
        )
        permits = Permits(self._shop.store, self._shop.app, self._shop.requests)
        verdicts = await permits.leave(ground, self._turn, self._item, need, self._changes)
        if not need.parts:
            return verdicts[0]
        self._refused = {at: verdict.words for at, verdict in enumerate(verdicts) if not verdict.allowed}
        allowed = [verdict for verdict in verdicts if verdict.allowed]
        if allowed and not self._turn.stopped():
            return Verdict(True, "\n".join(dict.fromkeys(filter(None, (one.words for one in allowed)))))
        words = "\n".join(dict.fromkeys(self._refused.values()))
        return Verdict(False, words, next((one.denial for one in verdicts if not one.allowed), None))

    def _hook_for(self, need: Need) -> HookWord | None:
        """What a hook said of the call. It has not seen where an address redirects to, so it allows nothing there."""
        unseen = need.after is not None and self._hook is not None and self._hook.effect == "allow"
        return None if unseen else self._hook

    async def carry_out(self, edits: Sequence[Edit]) -> None:
        """Journal what is about to be written, write it, and enter it into the ledger."""
        changes = [msgspec.to_builtins(change) for change in self._changes]
        self._item = msgspec.structs.replace(self._item, changes=changes)
        await self._turn.tool_updated(self._call, self._item)
        with anyio.CancelScope(shield=True):
            try:
                await editing.write(self.workspace, edits, self._item.id)
            except Failure:
                self._item = msgspec.structs.replace(self._item, changes=None)
                await self._turn.tool_updated(self._call, self._item)
                raise
            await self._turn.record(*editing.recorded(self._turn.id, self._item, self._changes, edits))

    async def keep(self, text: str, *, shown: bool, cut: bool, source: str | None) -> Kept:
        return await captured(self._desk, self._item, text, shown=shown, cut=cut, source=source)

    async def _redirected(self, call: ToolCall, names: Collection[str]) -> Outcome | None:
        """The answer to a call that has a better way and was not shown it yet."""
        routing = self._desk.settings.routing
        from ..policy.denials import denial
        from ..policy.routing import redirect

        found = await self.block(redirect, call.name, call.input, self._size_of, routing, names)
        mark = msgspec.json.encode([call.name, call.input], order="sorted").decode()
        known = self._desk.redirected
        if found is None or mark in known:
            return None
        known[mark] = None
        while len(known) > MAX_REDIRECTED:
            del known[next(iter(known))]
        told = denial(found.code, found.message, instead=found.instead)
        return Outcome(found.message, not_run=told)

    def _size_of(self, path: str) -> int | None:
        """The size of a file of the project."""
        try:
            return os.stat(self.workspace.real(path)).st_size
        except (Failure, Wrong, OSError):
            return None  # whoever opens it tells what is wrong

    async def _ask_hooks(
        self,
        event: Literal["PreToolUse", "PostToolUse"],
        input: dict[str, Any],
        outcome: Outcome | None = None,
    ) -> HookVerdict:
        if not self._desk.has_hooks():
            return NOTHING
        tool, id = self._call.name, self._item.id
        done = (outcome.text, outcome.exit_code) if outcome else (None, None)
        occasion = Occasion(
            event, names_of(tool), use=ToolUse(id, tool, input, *done), turn_id=self._turn.id, item_id=id
        )
        verdict = await self._desk.hooking.ask(occasion, self._turn.record)
        if verdict.messages:
            await self._turn.record(*hook_words.notices(verdict, self._turn.id))
        return verdict

    def _address(self) -> dict[str, Any]:
        """Which call of which chat the app is asked about."""
        key = self._desk.chat.key
        return {
            "sessionId": key.session_id,
            "chatId": key.chat_id,
            "turnId": self._turn.id,
            "itemId": self._item.id,
        }


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise Failure("invalid_params", f"`action`: {str(action)[:80]!r} is none of accept, decline, cancel")
    values = answer.get("values")
    return {"action": action, "values": values} if isinstance(values, dict) else {"action": action}


def _app_outcome(answer: dict[str, Any]) -> Outcome:
    blocks = answer.get("content")
    texts = [
        block.get("text") or f"[{block.get('type', 'content')}]"
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict)
    ]
    return Outcome("\n".join(map(str, texts)) or "(no output)", failed=answer.get("isError") is True)
