"""Runs programs for tools: in a folder of the project, for a limited time, confined where that works.

What a program starts ends with it (`system/children`); where bubblewrap works it is confined (`system/sandbox`).
Both streams come through one pipe, so that they stay in order. What is run, and whether it may, is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import anyio
import msgspec

from ..system import children, sandbox
from ..system.redact import redacted
from .base import Hands, Wrong, number
from .transcript import Transcript

DEFAULT_MS = 120_000
MAX_MS = 600_000
"""Who needs longer starts it elsewhere and looks at it from time to time; a turn should end."""

SandboxMode = Literal["auto", "require", "off"]

Show = Callable[[str], Awaitable[None]]
"""Where a program's output goes while it runs."""


class Job(msgspec.Struct, frozen=True):
    """A program to run. `scratch` is a folder of its own that it may write to; `part` tells it from others of the same
    call."""

    argv: Sequence[str]
    seconds: float
    cwd: str = "."
    environ: Mapping[str, str] = {}
    scratch: str | None = None
    part: str = ""


class Ended(msgspec.Struct, frozen=True):
    """How a program ended. `exit_code` is None when nobody could tell; `notes` say the rest in words."""

    exit_code: int | None
    timed_out: bool
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0

    @property
    def line(self) -> str:
        """The last line of an output."""
        return f"[{'; '.join(self.notes)}]"


class Runner:
    """`sandbox` says what holds where bubblewrap does not work: `auto` runs programs unconfined there, `require` none;
    `off` never confines them. `writable` are folders beside the project, `hidden` what no program may see."""

    def __init__(
        self,
        sandbox: SandboxMode,
        environ: Mapping[str, str],
        *,
        writable: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> None:
        self._mode = sandbox
        self._environ = environ
        self._writable = writable
        self._hidden = hidden

    @property
    def environ(self) -> dict[str, str]:
        """What a program finds in its environment: nothing that is secret."""
        return children.clean_environment(self._environ)

    def shell(self) -> str:
        import shutil

        found = shutil.which("bash", path=self._environ.get("PATH", os.defpath))
        return found if found and os.path.isabs(found) else "/bin/sh"

    async def box(self, hands: Hands) -> sandbox.Sandbox | None:
        """The sandbox that programs run in here; Wrong when one is required and there is none."""
        box = None if self._mode == "off" else await hands.block(sandbox.detect)
        if box is None and self._mode == "require":
            raise Wrong(
                "Commands cannot be run: the settings require a sandbox, and bubblewrap (bwrap) does not work here."
            )
        return box

    async def run(
        self,
        job: Job,
        box: sandbox.Sandbox | None,
        transcript: Transcript,
        hands: Hands,
        show: Show | None = None,
    ) -> Ended:
        """Run it to its end, or to the end of its time; what it prints goes into `transcript`, and to `show`."""
        before = await hands.block(sandbox.planted, hands.workspace.root)
        folder = hands.workspace.open_dir(job.cwd)
        try:
            argv, environ = self._wrapped(job, folder, box, hands)
            running = children.running(
                argv,
                folder=folder,
                environ=environ,
                key=f"{hands.call_key}/{job.part}" if job.part else hands.call_key,
                wrappers=sandbox.WRAPPERS if box else 0,
                scratch=job.scratch,
            )
            async with running as child:
                with anyio.move_on_after(job.seconds) as limit:
                    while data := await child.read():
                        await _pass_on(transcript.add(data), show)
                    await child.wait()
                await _pass_on(transcript.add(await child.end(), final=True), show)
        except OSError as error:
            raise Wrong(f"The command could not be started: {error.strerror or error}.") from error
        finally:
            os.close(folder)
        new = await hands.block(sandbox.planted, hands.workspace.root) - before
        timed_out = limit.cancelled_caught
        notes = [
            _ending(child, job.seconds if timed_out else None),
            *([] if box else _left(child)),
            "in the sandbox: no network, only the project is writable" if box else "not sandboxed",
            *([f"it created {', '.join(sorted(new))}, by which git can run programs"] if new else []),
        ]
        return Ended(child.exit_code, timed_out, tuple(notes))

    def _wrapped(
        self, job: Job, folder: int, box: sandbox.Sandbox | None, hands: Hands
    ) -> tuple[list[str], dict[str, str]]:
        environ = {**self.environ, **job.environ}
        if box is None:
            return list(job.argv), environ
        where = children.real_path(folder)
        writable = [*self._writable, *([job.scratch] if job.scratch else [])]
        wrapped = box.wrap(job.argv, hands.workspace.root, writable, self._hidden, where)
        return wrapped, sandbox.clean_environment(environ)


def time_limit(input: dict[str, Any]) -> float:
    """The seconds that a call gives what it runs."""
    milliseconds = number(input, "timeout_ms", DEFAULT_MS)
    if milliseconds > MAX_MS:
        raise Wrong(f"`timeout_ms` must be at most {MAX_MS}.")
    return milliseconds / 1000


async def _pass_on(text: str, show: Show | None) -> None:
    if text and show:
        await show(redacted(text))


def _ending(child: children.Child, limit: float | None) -> str:
    if limit is not None:
        return f"killed: the time limit of {round(limit, 2):g} s was over"
    if child.exit_code is None:
        return "killed by the command itself or from outside"
    return f"exit code {child.exit_code}"


def _left(child: children.Child) -> list[str]:
    if not child.left_behind:
        return []
    one = child.left_behind == 1
    return [f"{child.left_behind} background process{' was' if one else 'es were'} ended with it"]
