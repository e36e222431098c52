"""`run_code`: run a program that the model writes, so that only its output uses tokens.

The code is in a private folder (`system/scratch`) while `runner` runs it like a command. `runtimes` knows the
languages; whether the code may run is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from ...policy import code as policy
from ...providers.base import ToolSpec
from ...system import scratch
from ...system.redact import redact_text
from ...system.sandbox import Sandbox
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome
from ..kept_output import findings
from ..kept_output.findings import INLINE_BYTES
from .run_command import MAX_TITLE
from .runner import DEFAULT_TIMEOUT_MS, ExitStatus, ProgramRun, Runner, time_limit
from .runtimes import ALIASES, Runtime, RuntimeBroken, first_working, is_broken
from .transcript import Transcript

MAX_CODE = 64 * 1024
"""Bytes: nobody reviews more before it runs. A longer program belongs in a file."""

MAX_LABEL = 40
"""Characters of the code in the name of a stored output, which is above every hit in it."""


class RunCode:
    """`runtimes` are the installed ones, by language; only these are offered to the model. `inline` is the number of
    bytes of output that are sent in full.
    """

    kind: ToolKind = "execute"
    runs_alone = True

    def __init__(self, runner: Runner, runtimes: Mapping[str, Runtime], inline: int = INLINE_BYTES) -> None:
        self._runner = runner
        self._inline = inline
        self._runtimes = runtimes
        self.spec = _spec(list(runtimes))

    def title(self, input: ToolInput) -> str:
        code = " ".join(str(input.get("code", "")).split())
        shown = f"{code[: MAX_TITLE - 1]}…" if len(code) > MAX_TITLE else code
        return f"Run {str(input.get('language', ''))[:20]} code: {shown}"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        runtime = await self._working_runtime(self._runtime(input.text("language")))
        program = _Program(runtime, _code(input), time_limit(input), findings.output_queries(input))
        box = await self._runner.box(context)
        here = context.workspace.resolve(".").shown
        subject = policy.code_subject(runtime.language, program.code)
        confinement = await self._runner.confinement(box, context)
        intent = Intent("run", subject, folder=here, language=runtime.language, sandbox=confinement)
        return PlannedCall(intent, partial(self._run, program, box, context))

    def _runtime(self, language: str) -> Runtime:
        name = language.strip().lower()
        name = ALIASES.get(name, name)
        found = self._runtimes.get(name)
        if found is None:
            why = (
                f"{name} is not installed here" if name in policy.LANGUAGES else f"{name[:40]!r} is not known"
            )
            raise ToolError(f"`language`: {why}. There is {', '.join(self._runtimes) or 'none'}.")
        return found

    async def _working_runtime(self, runtime: Runtime) -> Runtime:
        """Return the program that runs the language here; raise ToolError when it is only a name on PATH."""
        try:
            return await anyio.to_thread.run_sync(first_working, runtime)
        except RuntimeBroken as broken:
            others = [name for name, each in self._runtimes.items() if not is_broken(each)]
            raise ToolError(
                f"`language`: {runtime.language} is not installed here: {broken}. "
                f"There is {', '.join(others) or 'none'}."
            ) from broken

    async def _run(self, program: _Program, box: Sandbox | None, context: ToolContext) -> ToolOutcome:
        try:
            folder = await context.block(program.write_files, context.call_key, context.workspace.root)
        except OSError as error:
            raise ToolError(f"The code could not be written: {error.strerror or error}.") from error
        try:
            printed = await self._build_and_run(program, folder, box, context)
        finally:
            # Shielded: awaiting in a cancelled scope raises at once, and the folder would stay.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(scratch.remove, folder)
        label = f"{program.runtime.language}: {' '.join(program.code.split())[:MAX_LABEL]}"
        told = await findings.show_output(printed.transcript, label, program.queries, self._inline, context)
        return ToolOutcome(
            told.text + printed.line,
            failed=printed.ended.failed,
            exit_code=printed.ended.exit_code,
            whole=told.whole and told.whole + printed.line,
            shown=True,
            source=told.source.id if told.source else None,
            measured=told.measured,
        )

    async def _build_and_run(
        self, program: _Program, folder: str, box: Sandbox | None, context: ToolContext
    ) -> _ProgramResult:
        """Build the program where needed, then run it, within one time limit."""
        until = anyio.current_time() + program.seconds
        words = program.words(folder, context.workspace.root)
        environ = program.environ(self._runner.environ, words)
        if program.runtime.build:
            argv = _fill_placeholders(program.runtime.build, words)
            # A compiler's warnings about code that it accepts are not output of the code.
            job = ProgramRun(argv, program.seconds, environ=environ, scratch=folder)
            said = Transcript()
            ended = await self._runner.run(job, box, said, context)
            if ended.failed:
                await context.show(redact_text(said.short()))
                return _ProgramResult(said, ended, built=False)
        left = max(0.0, until - anyio.current_time())
        job = ProgramRun(
            _fill_placeholders(program.runtime.run, words), left, environ=environ, scratch=folder
        )
        transcript = Transcript()
        return _ProgramResult(transcript, await self._runner.run(job, box, transcript, context, context.show))


class _Program(msgspec.Struct, frozen=True):
    """Code, its runtime, its time limit, and the queries for its output."""

    runtime: Runtime
    code: str
    seconds: float
    queries: list[str]

    def write_files(self, key: str, project: str) -> str:
        """Write the code into a new folder and return it. Blocking."""
        folder = scratch.make(key)
        try:
            with open(
                os.path.join(folder, self.runtime.file(self.code)), "x", encoding="utf-8", newline=""
            ) as file:
                file.write(self.runtime.text(self.code))
            packages = os.path.join(project, "node_modules")
            if self.runtime.node_modules and os.path.isdir(packages):
                os.symlink(packages, os.path.join(folder, "node_modules"))
        except OSError:
            scratch.remove(folder)
            raise
        return folder

    def words(self, folder: str, project: str) -> dict[str, str]:
        """Return the values of the placeholders in a runtime's arguments."""
        file = os.path.join(folder, self.runtime.file(self.code))
        return {"file": file, "made": os.path.join(folder, "made"), "scratch": folder, "project": project}

    def environ(self, around: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
        """Return the runtime's variables; in a list of paths, ours precede those of the user."""
        found = {}
        for name, value in self.runtime.environ.items():
            own = value.format_map(words)
            found[name] = (
                f"{own}{os.pathsep}{around[name]}" if name.endswith("PATH") and around.get(name) else own
            )
        return found


class _ProgramResult(msgspec.Struct, frozen=True):
    """The result of a program; `built` says that it was built and run."""

    transcript: Transcript
    ended: ExitStatus
    built: bool = True

    @property
    def line(self) -> str:
        return (
            self.ended.line if self.built else f"[it did not compile and was not run; {self.ended.line[1:]}"
        )


def _spec(languages: Sequence[str]) -> ToolSpec:
    return ToolSpec(
        "run_code",
        "Run code in the project's folder, to read, count or compare much and print only what matters. Sandboxed like "
        "run_command. A long output is kept and answered by intent or queries.",
        {
            "type": "object",
            "properties": {
                "language": {"type": "string", "enum": list(languages)},
                "code": {"type": "string"},
                "intent": {"type": "string", "description": "What to find in a long output."},
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The same, several.",
                },
                "timeout_ms": {"type": "integer", "description": f"Default {DEFAULT_TIMEOUT_MS}."},
            },
            "required": ["language", "code"],
        },
    )


def _code(input: ToolInput) -> str:
    code = input.text("code")
    try:
        encoded = code.encode()
    except UnicodeEncodeError:
        raise ToolError("`code` has characters that are no text.") from None
    if b"\0" in encoded:
        raise ToolError("`code` must not contain a NUL character.")
    if len(encoded) > MAX_CODE:
        raise ToolError(f"`code` is longer than {MAX_CODE} bytes. Write it to a file and run that.")
    return code


def _fill_placeholders(words: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Replace placeholders that are whole arguments: a path may contain braces."""
    return [names.get(word[1:-1], word) if word[:1] == "{" else word for word in words]
