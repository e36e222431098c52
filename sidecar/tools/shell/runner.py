"""Run programs for tools: in a folder of the project, for a limited time, in a sandbox where that works.

The descendants of a program end with it (`system/process_tree`); where bubblewrap works it is confined
(`system/sandbox`). Both streams share one pipe, so that they stay in order. What is run, and whether it may, is
decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
import msgspec

from ...policy.protected import is_watched
from ...system import environment, process_tree, sandbox
from ...system.programs import find_program, own_environment
from ...system.redact import redact_text
from ...system.survey import FolderSurvey, compare, survey
from ...workspace.paths import not_found_refusal
from ..base import Confinement, ShowOutput, ToolContext, ToolError, ToolInput
from .transcript import Transcript

if TYPE_CHECKING:
    from ...system.choices import Sandbox

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
"""A longer job should be started outside and checked from time to time; a turn should end."""


MAX_NAMED = 20
"""Changed files that are named; the checkout of a repository may have hundreds."""


MAX_HIDDEN_NAMED = 3
"""Files that a rule withholds and that are named after each command; the rest is counted."""

SET_UPS = 8
"""How often the sandbox is planned anew when it could not be set up. Each takes some 50 ms."""

HOLD_S = 0.5
"""Another sandbox removes its mount points within a millisecond; whoever locks the folder for longer is not one."""


class Bounds(msgspec.Struct, frozen=True):
    """What programs in the sandbox see besides the project, and their resource limits.

    `writable` are folders beside the project, `readable` what can be read in the emptied home, `hidden` what is not
    visible, `others` the folders of other projects, `read_only` files that decide what runs outside, `environment`
    the names of further variables. A `max_memory` of 0 means half of the machine's memory.
    """

    writable: Sequence[str] = ()
    hidden: Sequence[str] = ()
    readable: Sequence[str] = ()
    others: Sequence[str] = ()
    read_only: Sequence[str] = ()
    environment: Sequence[str] = ()
    max_processes: int = 2048
    max_memory: int = 0
    max_tmp: int = sandbox.MAX_TMP

    def limits(self) -> process_tree.ProcessLimits:
        half = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return process_tree.ProcessLimits(self.max_processes, self.max_memory or half)

    def view(self, before: FolderSurvey) -> sandbox.SandboxView:
        return sandbox.SandboxView(
            others=self.others,
            readable=self.readable,
            read_only=self.read_only,
            repositories=before.repositories,
            bare=before.bare,
            sockets=before.sockets,
            max_tmp=self.max_tmp,
            max_processes=self.max_processes,
        )


class ProgramRun(msgspec.Struct, frozen=True):
    """A program to run. `scratch` is a private folder that it may write to; `part` tells it from others of the same
    call.
    """

    argv: Sequence[str]
    seconds: float
    cwd: str = "."
    environ: Mapping[str, str] = {}
    scratch: str | None = None
    part: str = ""


class ExitStatus(msgspec.Struct, frozen=True):
    """How a program ended. `exit_code` is None when it is unknown; `notes` explain the rest."""

    exit_code: int | None
    timed_out: bool
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0

    @property
    def line(self) -> str:
        """Return the last line of an output."""
        return f"[{'; '.join(self.notes)}]"


class Runner:
    """`sandbox` decides what happens where bubblewrap does not work: `auto` runs programs unconfined, `require` runs
    none; `off` never confines them. `bounds` apply to confined programs.
    """

    def __init__(self, sandbox: Sandbox, environ: Mapping[str, str], bounds: Bounds | None = None) -> None:
        self._mode = sandbox
        self._environ = environ
        self._bounds = bounds or Bounds()

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of an unconfined program: without known secrets."""
        return process_tree.clean_environment(self._environ, self._bounds.environment)

    def shell(self) -> str:
        return find_program("bash", self._environ.get("PATH", os.defpath)) or "/bin/sh"

    async def box(self, context: ToolContext) -> sandbox.Sandbox | None:
        """Return the sandbox that programs run in; raise ToolError when one is required and there is none."""
        box = None if self._mode == "off" else await context.block(sandbox.detect)
        if box is None and self._mode == "require":
            raise ToolError(
                "Commands cannot be run: the settings require a sandbox, and bubblewrap (bwrap) does not work here."
            )
        return box

    async def confinement(self, box: sandbox.Sandbox | None, context: ToolContext) -> Confinement:
        """Return whether programs run in a sandbox here, and why not, for the permission dialog."""
        if box is not None:
            return Confinement(True)
        if self._mode == "off":
            return Confinement(False, 'the settings switch it off (sandbox = "off")', "switched_off")
        code, words = await context.block(sandbox.explain_absence)
        return Confinement(False, words, code)

    async def run(
        self,
        job: ProgramRun,
        box: sandbox.Sandbox | None,
        transcript: Transcript,
        context: ToolContext,
        show: ShowOutput | None = None,
    ) -> ExitStatus:
        """Run it to its end or its time limit; its output goes into `transcript` and to `show`."""
        # What was planned may be gone when it is mounted: a socket, a toolchain. Nothing has run then.
        for _ in range(SET_UPS):
            try:
                return await self._run_once(job, box, _Output(transcript, show), context)
            except _NotConfined as error:
                said = str(error)
        raise ToolError(f"The command was not started: its sandbox could not be set up ({said}).")

    async def _run_once(
        self, job: ProgramRun, box: sandbox.Sandbox | None, output: _Output, context: ToolContext
    ) -> ExitStatus:
        root = context.workspace.root
        before = await context.block(survey, root, is_watched)
        # Held open from the check to the start: the path may lead elsewhere by then.
        folder = context.workspace.open_dir(job.cwd)
        points: sandbox.MountPoints | None = None
        try:
            points = await _hold_mount_points(root) if box else None
            argv, environ = await self._sandboxed_command(
                job, process_tree.real_path(folder), box, before, context
            )
            running = process_tree.running(
                argv,
                folder=folder,
                environ=environ,
                key=f"{context.call_key}/{job.part}" if job.part else context.call_key,
                wrappers=sandbox.WRAPPERS if box else 0,
                scratch=job.scratch,
                limits=self._bounds.limits() if box else None,
            )
            async with running as child:
                timed_out = await output.follow(child, job.seconds, confined=box is not None)
        except process_tree.FolderGone as error:
            raise not_found_refusal(job.cwd, f"{job.cwd} does not exist any more.") from error
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from error
        finally:
            os.close(folder)
            if points:
                points.release(before.sockets)
        # After every process is gone, or one of them could still write.
        planted = compare(before, await context.block(survey, root, is_watched))
        notes = [
            self._exit_note(child, job.seconds if timed_out else None),
            *([] if box else _leftover_notes(child)),
            "in the sandbox: no network, only the project is writable" if box else "not sandboxed",
            *(_hidden_notes(context.hidden_files, root) if box else []),
            *_risky_files(*planted),
        ]
        return ExitStatus(child.exit_code, timed_out, tuple(notes))

    async def _sandboxed_command(
        self,
        job: ProgramRun,
        where: str,
        box: sandbox.Sandbox | None,
        before: FolderSurvey,
        context: ToolContext,
    ) -> tuple[list[str], dict[str, str]]:
        if box is None:
            return list(job.argv), {**self.environ, **job.environ}
        bounds = self._bounds
        writable = [*bounds.writable, *([job.scratch] if job.scratch else [])]
        root, view = context.workspace.root, bounds.view(before)
        inside = {**environment.select_environment(self.environ, bounds.environment), **job.environ}
        # The supervisor and bubblewrap run outside.
        outside = own_environment(inside)
        view = msgspec.structs.replace(
            view, variables={name: value for name, value in inside.items() if outside.get(name) != value}
        )
        hidden = [*bounds.hidden, *context.hidden_files]
        wrapped = await context.block(box.wrap, job.argv, root, writable, hidden, where, view, self._environ)
        return wrapped, outside

    def _exit_note(self, child: process_tree.SupervisedProcess, limit: float | None) -> str:
        if child.exceeded == "processes":
            most = self._bounds.max_processes
            return f"killed: it had more than {most} processes and threads (`tools.max_processes`)"
        if child.exceeded == "memory":
            most = self._bounds.limits().memory // (1024 * 1024)
            return f"killed: it took more than {most} MiB of memory (`tools.max_memory_bytes`)"
        if limit is not None:
            return f"killed: the time limit of {round(limit, 2):g} s was over"
        if child.exit_code is None:
            return "killed by the command itself or from outside"
        return f"exit code {child.exit_code}"


def time_limit(input: ToolInput) -> float:
    """Return the time limit of a call, in seconds."""
    milliseconds = input.number("timeout_ms", DEFAULT_TIMEOUT_MS)
    if milliseconds > MAX_TIMEOUT_MS:
        raise ToolError(f"`timeout_ms` must be at most {MAX_TIMEOUT_MS}.")
    return milliseconds / 1000


class _NotConfined(Exception):
    """Bubblewrap ended before the command was started; the text is what it said."""


class _Output:
    """Where the output of a command goes. What bubblewrap says before the start is held back until that is known."""

    def __init__(self, transcript: Transcript, show: ShowOutput | None) -> None:
        self._transcript = transcript
        self._show = show
        self._held = b""

    async def follow(self, child: process_tree.SupervisedProcess, seconds: float, *, confined: bool) -> bool:
        """Take all its output; return whether the time limit ended it. Raises _NotConfined."""
        with anyio.move_on_after(seconds) as limit:
            # The end of the output is not the end of the program: it may have closed its output and gone on.
            while data := await child.read():
                await self._add(data, held=confined and not child.confined)
            await child.wait()
        # After the limit too: the last lines before the end say most about why it took so long.
        rest = await child.end()
        if confined and not child.confined and child.exit_code and not limit.cancelled_caught:
            raise _NotConfined((self._held + rest).decode(errors="replace").strip())
        await self._add(rest, final=True)
        return limit.cancelled_caught

    async def _add(self, data: bytes, *, held: bool = False, final: bool = False) -> None:
        self._held += data
        if not held:
            text = self._transcript.add(self._held, final=final)
            self._held = b""
            if text and self._show:
                await self._show(redact_text(text))


async def _hold_mount_points(root: str) -> sandbox.MountPoints:
    points = sandbox.MountPoints(root)
    with anyio.move_on_after(HOLD_S):
        while not points.hold():  # noqa: ASYNC110  a lock on a folder sends no event
            await anyio.sleep(0.005)
    return points


def _leftover_notes(child: process_tree.SupervisedProcess) -> list[str]:
    if not child.left_behind:
        return []
    one = child.left_behind == 1
    return [f"{child.left_behind} background process{' was' if one else 'es were'} ended with it"]


def _hidden_notes(paths: Sequence[str], root: str) -> list[str]:
    if not paths:
        return []
    shown = [path.removeprefix(f"{root}/") for path in paths]
    more = f" and {len(shown) - MAX_HIDDEN_NAMED} more" if len(shown) > MAX_HIDDEN_NAMED else ""
    return [f"a rule keeps it from reading {', '.join(shown[:MAX_HIDDEN_NAMED])}{more}"]


def _risky_files(created: Sequence[str], changed: Sequence[str]) -> list[str]:
    """Return new or changed files through which other programs would run code."""
    by_git = all(".git" in path.split("/") for path in (*created, *changed))
    effect = "by which git can run programs" if by_git else "by which other programs run code or are steered"
    words = (("created", created), ("changed", changed))
    return [f"it {verb} {_name_some(paths)}, {effect}" for verb, paths in words if paths]


def _name_some(paths: Sequence[str]) -> str:
    more = len(paths) - MAX_NAMED
    return ", ".join(paths[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
