"""`run_code`: a program that the model writes, so that only what it prints takes room in the window.

The code lies in a private folder (`system/scratch`) while it runs, by `runner`, as a command does. Which languages
there are is known to `runtimes`; whether it may run is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ..policy import code as policy
from ..providers.base import ToolSpec
from ..system import scratch
from ..system.redact import redacted
from ..system.sandbox import Sandbox
from . import findings
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, text
from .findings import INLINE
from .run_command import TITLE
from .runner import DEFAULT_MS, Ended, Job, Runner, time_limit
from .runtimes import ALIASES, Runtime
from .transcript import Transcript

MAX_CODE = 64 * 1024
"""Bytes: nobody judges more before it runs. A longer program belongs into a file."""

LABEL = 40
"""Characters of the code in the name of a kept output, which stands above every hit in it."""


class RunCode:
    """`runtimes` are those that are installed, by language; only these are told to the model. `inline` are the bytes of
    output that are sent whole."""

    kind: Kind = "execute"
    alone = True

    def __init__(self, runner: Runner, runtimes: Mapping[str, Runtime], inline: int = INLINE) -> None:
        self._runner = runner
        self._inline = inline
        self._runtimes = runtimes
        self.spec = _spec(list(runtimes))

    def title(self, input: dict[str, Any]) -> str:
        code = " ".join(str(input.get("code", "")).split())
        shown = f"{code[: TITLE - 1]}…" if len(code) > TITLE else code
        return f"Run {str(input.get('language', ''))[:20]} code: {shown}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        runtime = self._runtime(text(input, "language"))
        program = _Program(runtime, _code(input), time_limit(input), findings.wanted(input))
        box = await self._runner.box(hands)
        here = hands.workspace.resolve(".").shown
        subject = policy.subject(runtime.language, program.code)
        need = Need("run", subject, folder=here, language=runtime.language)
        return Ready(need, partial(self._run, program, box, hands))

    def _runtime(self, language: str) -> Runtime:
        name = language.strip().lower()
        name = ALIASES.get(name, name)
        found = self._runtimes.get(name)
        if found is None:
            why = (
                f"{name} is not installed here" if name in policy.LANGUAGES else f"{name[:40]!r} is not known"
            )
            raise Wrong(f"`language`: {why}. There is {', '.join(self._runtimes) or 'none'}.")
        return found

    async def _run(self, program: _Program, box: Sandbox | None, hands: Hands) -> Outcome:
        try:
            folder = await hands.block(program.put, hands.call_key, hands.workspace.root)
        except OSError as error:
            raise Wrong(f"The code could not be written: {error.strerror or error}.") from error
        try:
            printed = await self._printed(program, folder, box, hands)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(scratch.remove, folder)
        label = f"{program.runtime.language}: {' '.join(program.code.split())[:LABEL]}"
        told = await findings.told(printed.transcript, label, program.queries, self._inline, hands)
        return Outcome(
            told.text + printed.line,
            failed=printed.ended.failed,
            exit_code=printed.ended.exit_code,
            whole=told.whole and told.whole + printed.line,
            shown=True,
            source=told.source.id if told.source else None,
            measured=told.measured,
        )

    async def _printed(self, program: _Program, folder: str, box: Sandbox | None, hands: Hands) -> _Printed:
        """Build it where that must be, then run it, within one time."""
        until = anyio.current_time() + program.seconds
        words = program.words(folder, hands.workspace.root)
        environ = program.environ(self._runner.environ, words)
        if program.runtime.build:
            argv = _filled(program.runtime.build, words)
            # What a compiler says of code that it takes is no output of the code.
            job = Job(argv, program.seconds, environ=environ, scratch=folder)
            said = Transcript()
            ended = await self._runner.run(job, box, said, hands)
            if ended.failed:
                await hands.show(redacted(said.short()))
                return _Printed(said, ended, built=False)
        left = max(0.0, until - anyio.current_time())
        job = Job(_filled(program.runtime.run, words), left, environ=environ, scratch=folder)
        transcript = Transcript()
        return _Printed(transcript, await self._runner.run(job, box, transcript, hands, hands.show))


class _Program(msgspec.Struct, frozen=True):
    """Code, who runs it, for how long, and what is wanted of its output."""

    runtime: Runtime
    code: str
    seconds: float
    queries: list[str]

    def put(self, key: str, project: str) -> str:
        """Write it into a folder of its own, which is returned. Blocking."""
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
        """What stands for the names in a runtime's words."""
        file = os.path.join(folder, self.runtime.file(self.code))
        return {"file": file, "made": os.path.join(folder, "made"), "scratch": folder, "project": project}

    def environ(self, around: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
        """The runtime's own variables; one that is a list of places goes before what the user has in it."""
        found = {}
        for name, value in self.runtime.environ.items():
            own = value.format_map(words)
            found[name] = (
                f"{own}{os.pathsep}{around[name]}" if name.endswith("PATH") and around.get(name) else own
            )
        return found


class _Printed(msgspec.Struct, frozen=True):
    """What came of a program; `built` says that it came to run."""

    transcript: Transcript
    ended: Ended
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
                "timeout_ms": {"type": "integer", "description": f"Default {DEFAULT_MS}."},
            },
            "required": ["language", "code"],
        },
    )


def _code(input: dict[str, Any]) -> str:
    code = text(input, "code")
    try:
        encoded = code.encode()
    except UnicodeEncodeError:
        raise Wrong("`code` has characters that are no text.") from None
    if b"\0" in encoded:
        raise Wrong("`code` must not contain a NUL character.")
    if len(encoded) > MAX_CODE:
        raise Wrong(f"`code` is longer than {MAX_CODE} bytes. Write it to a file and run that.")
    return code


def _filled(words: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """A runtime's words with what they stand for, each the whole of its word: a path may hold braces."""
    return [names.get(word[1:-1], word) if word[:1] == "{" else word for word in words]
