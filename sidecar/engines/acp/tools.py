"""Tools behind the requests of an agent: a call that it makes itself, its reads and writes of files, its terminals.

Each is made for one request and run by the chat like every tool: hooks, permission, sandbox, ledger. Knows no wire.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import anyio

from ...model import JsonObject
from ...providers.base import ToolSpec
from ...system.redact import redact_text
from ...tools.base import Edit, Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from ...tools.files.editing import MAX_FILE_BYTES, change_summary, encode_like
from ...tools.shell.runner import ProgramRun, Runner
from ...tools.shell.transcript import Transcript
from ...workspace.text import NotText, TextFile, decode_text
from ...workspace.writing import read_current
from .intents import intent_of

TERMINAL_S = 3600.0
"""The longest that a command of an agent may run; agents end theirs earlier."""

MAX_TERMINAL_BYTES = 1024 * 1024
"""Bytes of a terminal's output that are kept for the agent, when it names no limit."""


class _OwnTool:
    """What all of them share. `spec` has the name that the journal shows."""

    runs_alone = True

    def __init__(self, name: str, kind: ToolKind, title: str) -> None:
        self.spec = ToolSpec(name, title, {"type": "object"})
        self.kind: ToolKind = kind
        self._title = title

    def title(self, input: ToolInput) -> str:
        return self._title


class AgentTool(_OwnTool):
    """A call that the agent runs itself once it is `allowed`; it ends when the agent reports the `outcome`."""

    def __init__(
        self, engine: str, name: str, kind: ToolKind, title: str, described: Mapping[str, Any]
    ) -> None:
        super().__init__(name, kind, title)
        self._engine = engine
        self._described = described
        self.allowed = anyio.Event()
        self._ended = anyio.Event()
        self._outcome = ToolOutcome("")

    def end(self, outcome: ToolOutcome) -> None:
        self._outcome = outcome
        self._ended.set()

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        intent = await context.block(intent_of, self._engine, self._described, context)
        return PlannedCall(intent, self._run)

    async def _run(self) -> ToolOutcome:
        self.allowed.set()
        await self._ended.wait()
        return self._outcome


class ReadRequest(_OwnTool):
    """`fs/read_text_file`: the text goes to the agent by `text`; the outcome names only the file."""

    def __init__(self, path: str, line: int | None, limit: int | None) -> None:
        super().__init__("read_text_file", "read", f"Read {path}")
        self._path = path
        self._line = line
        self._limit = limit
        self.text: str | None = None

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        shown = context.workspace.resolve(self._path).shown

        async def run() -> ToolOutcome:
            data = await context.block(read_current, context.workspace, shown, MAX_FILE_BYTES)
            unsaved = await context.unsaved_text(shown)
            if data is None and unsaved is None:
                raise ToolError(f"There is no file {shown}.")
            try:
                text = unsaved if unsaved is not None else (await context.block(decode_text, data)).plain
            except NotText as error:
                raise ToolError(f"{shown}: {error}") from error
            self.text = self._part(text)
            return ToolOutcome(f"Read {shown}: {len(self.text)} characters", paths=(shown,), shown=True)

        return PlannedCall(Intent("read", shown), run)

    def _part(self, text: str) -> str:
        if self._line is None and self._limit is None:
            return text
        lines = text.splitlines(keepends=True)[max(0, (self._line or 1) - 1) :]
        return "".join(lines if self._limit is None else lines[: max(0, self._limit)])


class WriteRequest(_OwnTool):
    """`fs/write_text_file`. The bytes before are those that are there now: the agent has its own idea of the file."""

    def __init__(self, path: str, content: str, *, allowed_before: bool) -> None:
        super().__init__("write_text_file", "edit", f"Write {path}")
        self._path = path
        self._content = content
        self._allowed_before = allowed_before

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        shown = context.workspace.resolve(self._path).shown
        before = await context.block(read_current, context.workspace, shown, MAX_FILE_BYTES)
        file = TextFile("")
        if before is not None:
            try:
                file = await context.block(decode_text, before)
            except NotText:
                file = TextFile("")  # a binary file that the agent replaces by text
        unsaved = await context.unsaved_text(shown)
        in_buffer = False
        if unsaved is not None and before is not None and (buffer := encode_like(file, unsaved)) != before:
            if not context.writes_buffers:
                raise ToolError(f"{shown} has unsaved changes in the user's editor.")
            before, in_buffer = buffer, True
        after = await context.block(encode_like, file, self._content)
        if len(after) > MAX_FILE_BYTES:
            raise ToolError(f"{shown} would have {len(after)} bytes, more than the {MAX_FILE_BYTES}.")
        edit = Edit(shown, before, after, in_buffer=in_buffer)
        edits = (edit,) if after != before else ()

        async def run() -> ToolOutcome:
            return ToolOutcome(f"Wrote {await context.block(change_summary, edit)}", paths=(shown,))

        return PlannedCall(Intent("edit", shown, edits, allowed_before=self._allowed_before), run)


class TerminalRequest(_OwnTool):
    """A terminal of an agent: a command in the sandbox, whose output the agent asks for while it runs."""

    def __init__(self, runner: Runner, params: JsonObject, *, allowed_before: bool) -> None:
        arguments, cwd = params.get("args"), params.get("cwd")
        words = arguments if isinstance(arguments, list) else []
        self._words = [str(params.get("command", "")), *map(str, words)]
        self.line = self._words[0] if len(self._words) == 1 else shlex.join(self._words)
        super().__init__("terminal", "execute", f"Run {' '.join(self.line.split())}")
        self._runner = runner
        self._cwd = cwd if isinstance(cwd, str) else None
        self._environ = _variables(params.get("env"))
        limit = params.get("outputByteLimit")
        self._most = limit if isinstance(limit, int) and limit >= 0 else MAX_TERMINAL_BYTES
        self._allowed_before = allowed_before
        self._output = bytearray()
        self._is_cut = False
        self._scope = anyio.CancelScope()
        self._is_killed = False
        self.exit_code: int | None = None
        self.started = anyio.Event()
        self.ended = anyio.Event()

    def kill(self) -> None:
        """End the command; what it printed stays."""
        self._is_killed = True
        self._scope.cancel()

    def output(self) -> str:
        return bytes(self._output).decode(errors="ignore")

    def state(self) -> JsonObject:
        """What `terminal/output` answers."""
        found: JsonObject = {"output": self.output(), "truncated": self._is_cut}
        return found | {"exitStatus": self.exit_status()} if self.ended.is_set() else found

    def exit_status(self) -> JsonObject:
        signal = "SIGKILL" if self._is_killed else None
        return {"exitCode": None if self._is_killed else self.exit_code, "signal": signal}

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        if not self._words[0].strip() or "\0" in "".join(self._words):
            raise ToolError("`command` must be a command line.")
        cwd = context.workspace.resolve(self._cwd).shown if self._cwd else "."
        box = await self._runner.box(context)
        # A single word with spaces is a command line; agents differ in that.
        direct = len(self._words) > 1
        argv = self._words if direct else [self._runner.shell(), "-c", self._words[0]]
        if direct:
            argv = [self._runner.shell(), "-c", 'exec "$@"', "sh", *self._words]
        job = ProgramRun(argv, TERMINAL_S, cwd or ".", self._environ)
        confinement = await self._runner.confinement(box, context)

        async def show(text: str) -> None:
            self._add(text)
            await context.show(text)

        async def run() -> ToolOutcome:
            self.started.set()
            transcript = Transcript()
            try:
                with self._scope:
                    ended = await self._runner.run(job, box, transcript, context, show)
                    self.exit_code = ended.exit_code
            finally:
                self.ended.set()
            text = redact_text(transcript.short())
            if self._scope.cancelled_caught:
                return ToolOutcome(f"{text}[killed by the agent]", failed=True)
            return ToolOutcome(text + ended.line, failed=ended.failed, exit_code=ended.exit_code)

        intent = Intent(
            "run", self.line, folder=cwd, sandbox=confinement, allowed_before=self._allowed_before
        )
        return PlannedCall(intent, run)

    def _add(self, text: str) -> None:
        self._output += text.encode(errors="replace")
        if len(self._output) > self._most:
            # The protocol cuts from the beginning, at a whole character.
            del self._output[: len(self._output) - self._most]
            while self._output and self._output[0] & 0xC0 == 0x80:
                del self._output[0]
            self._is_cut = True


def _variables(given: Any) -> dict[str, str]:
    entries = given if isinstance(given, list) else []
    return {
        one["name"]: one["value"]
        for one in entries
        if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("value"), str)
    }
