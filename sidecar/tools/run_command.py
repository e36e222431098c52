"""`run_command`: a command line of the shell, in a folder of the project, for a limited time.

What the command starts ends with it (`system/children`); where bubblewrap works it is confined (`system/sandbox`).
Both streams come through one pipe, so that they stay in order. Whether it may run is decided elsewhere.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import anyio

from ..providers.base import ToolSpec
from ..system import children, sandbox
from ..system.redact import redacted
from .base import Hands, Kind, Need, Outcome, Ready, Wrong, number, text

DEFAULT_MS = 120_000
MAX_MS = 600_000
"""Who needs longer starts it elsewhere and looks at it from time to time; a turn should end."""

MAX_COMMAND = 64 * 1024
"""Bytes: half of what Linux takes as one argument. A longer script belongs into a file."""

MAX_TEXT = 24 * 1024
"""Bytes of output for the model: some six thousand tokens. Its beginning and its end tell most."""

MAX_WHOLE = 8 * 1024 * 1024
"""Bytes of output that are kept and shown. A command that goes on is read on, or it would hang."""

TITLE = 80
"""Characters of the command in a title."""


class RunCommand:
    """`sandbox` says what holds where bubblewrap does not work: `auto` runs commands unconfined there, `require` none;
    `off` never confines them. `writable` are folders beside the project, `hidden` what no command may see."""

    kind: Kind = "execute"
    alone = True
    spec = ToolSpec(
        "run_command",
        "Run a command line in the project's folder by bash, or sh where there is no bash. It has no input and no "
        "terminal. Output and errors come together; of a long output you get the beginning and the end. Processes that "
        "it leaves in the background are ended when it ends. The last line tells the exit code, and whether it ran in "
        "a sandbox, where there is no network and only the project can be changed.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "cwd": {
                    "type": "string",
                    "description": 'A folder of the project to run it in; "." by default.',
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_MS,
                    "description": f"When to kill it, in milliseconds; {DEFAULT_MS} by default.",
                },
            },
            "required": ["command"],
        },
    )

    def __init__(
        self,
        sandbox: Literal["auto", "require", "off"],
        environ: Mapping[str, str],
        *,
        writable: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> None:
        self._mode = sandbox
        self._environ = environ
        self._writable = writable
        self._hidden = hidden

    def title(self, input: dict[str, Any]) -> str:
        command = " ".join(str(input.get("command", "")).split())
        return f"Run {command[: TITLE - 1]}…" if len(command) > TITLE else f"Run {command}"

    async def prepare(self, input: dict[str, Any], hands: Hands) -> Ready:
        command = _command(input)
        milliseconds = number(input, "timeout_ms", DEFAULT_MS)
        if milliseconds > MAX_MS:
            raise Wrong(f"`timeout_ms` must be at most {MAX_MS}.")
        cwd = text(input, "cwd", ".")
        await hands.block(_check_folder, hands, cwd)
        box = None if self._mode == "off" else await hands.block(sandbox.detect)
        if box is None and self._mode == "require":
            raise Wrong(
                "Commands cannot be run: the settings require a sandbox, and bubblewrap (bwrap) does not work here."
            )
        run = partial(self._run, command, cwd, milliseconds / 1000, box, hands)
        return Ready(Need("run", command, folder=hands.workspace.resolve(cwd).shown), run)

    async def _run(
        self, command: str, cwd: str, seconds: float, box: sandbox.Sandbox | None, hands: Hands
    ) -> Outcome:
        before = await hands.block(sandbox.planted, hands.workspace.root)
        transcript = Transcript()
        folder = hands.workspace.open_dir(cwd)
        try:
            argv, environ = self._wrapped(command, folder, box, hands)
            running = children.running(
                argv,
                folder=folder,
                environ=environ,
                key=hands.call_key,
                wrappers=sandbox.WRAPPERS if box else 0,
            )
            async with running as child:
                with anyio.move_on_after(seconds) as limit:
                    while data := await child.read():
                        await _show(transcript.add(data), hands)
                    await child.wait()
                await _show(transcript.add(await child.end(), final=True), hands)
        except OSError as error:
            raise Wrong(f"The command could not be started: {error.strerror or error}.") from error
        finally:
            os.close(folder)
        notes = [
            _ending(child, seconds if limit.cancelled_caught else None),
            *([] if box else _left(child)),
            "in the sandbox: no network, only the project is writable" if box else "not sandboxed",
        ]
        new = await hands.block(sandbox.planted, hands.workspace.root) - before
        if new:
            notes.append(f"it created {', '.join(sorted(new))}, by which git can run programs")
        return transcript.outcome(f"[{'; '.join(notes)}]", child.exit_code, timed_out=limit.cancelled_caught)

    def _wrapped(
        self, command: str, folder: int, box: sandbox.Sandbox | None, hands: Hands
    ) -> tuple[list[str], dict[str, str]]:
        environ = children.clean_environment(self._environ)
        argv = [_shell(environ), "-c", command]
        if box is None:
            return argv, environ
        where = children.real_path(folder)
        wrapped = box.wrap(argv, hands.workspace.root, self._writable, self._hidden, where)
        return wrapped, sandbox.clean_environment(environ)


class Transcript:
    """The output as text: whole up to a bound, and its end, for whatever bytes come in whatever pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes; returns the text to show, which never ends within a character."""
        # A NUL is a character like any other in JSON, but not to every provider.
        text = self._decoder.decode(data, final).replace("\0", "\ufffd")
        encoded = text.encode()
        room = max(0, MAX_WHOLE - len(self._kept))
        self._kept += encoded[:room]
        self._tail += encoded
        del self._tail[: -MAX_TEXT // 2]
        self._size += len(encoded)
        return text if len(encoded) <= room else encoded[:room].decode(errors="ignore")

    def outcome(self, last: str, exit_code: int | None, *, timed_out: bool) -> Outcome:
        """`last` is the line that tells how it ended."""
        short, whole = self._short(), None
        if self._size > MAX_TEXT:
            lost = self._size - len(self._kept)
            whole = redacted(_line(_decoded(self._kept)) + (_gap(lost) if lost else "") + last)
        failed = timed_out or exit_code != 0
        return Outcome(redacted(_line(short) + last), failed=failed, exit_code=exit_code, whole=whole)

    def _short(self) -> str:
        if self._size <= MAX_TEXT:
            return _decoded(self._kept)
        head, tail = _decoded(self._kept[: MAX_TEXT // 2]), _decoded(self._tail)
        lost = self._size - len(head.encode()) - len(tail.encode())
        return _line(head) + _gap(lost) + tail


def _command(input: dict[str, Any]) -> str:
    command = text(input, "command")
    try:
        encoded = command.encode()
    except UnicodeEncodeError:
        raise Wrong("`command` has characters that are no text.") from None
    if b"\0" in encoded:
        raise Wrong("`command` must not contain a NUL character.")
    if len(encoded) > MAX_COMMAND:
        raise Wrong(f"`command` is longer than {MAX_COMMAND} bytes. Write a script to a file and run that.")
    return command


def _check_folder(hands: Hands, cwd: str) -> None:
    os.close(hands.workspace.open_dir(cwd))


def _shell(environ: Mapping[str, str]) -> str:
    import shutil

    path = environ.get("PATH", os.defpath)
    found = shutil.which("bash", path=path)
    return found if found and os.path.isabs(found) else "/bin/sh"


async def _show(text: str, hands: Hands) -> None:
    if text:
        await hands.show(redacted(text))


def _ending(child: children.Child, limit: float | None) -> str:
    if limit is not None:
        return f"killed: the time limit of {limit:g} s was over"
    if child.exit_code is None:
        return "killed by the command itself or from outside"
    return f"exit code {child.exit_code}"


def _left(child: children.Child) -> list[str]:
    if not child.left_behind:
        return []
    one = child.left_behind == 1
    return [f"{child.left_behind} background process{' was' if one else 'es were'} ended with it"]


def _gap(lost: int) -> str:
    return f"[… {lost} bytes left out …]\n"


def _line(text: str) -> str:
    """The text with its last line closed."""
    return text if not text or text.endswith("\n") else text + "\n"


def _decoded(part: bytearray) -> str:
    """A part of well-formed text; a character that was cut at an edge is left out."""
    return part.decode(errors="ignore")
