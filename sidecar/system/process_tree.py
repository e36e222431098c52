"""Commands as child processes: a clean environment, output as it comes, and an end for the whole process tree.

Each command has a supervisor process (`supervisor`) between us and it, which ends the whole tree when we ask, and
also when we have died. Its bounds: after a command exits, the rest of its output is read for `LINGER_S`; ending one
takes less than `SUPERVISOR_S` and twice `SWEEP_S`. Does not know what the command is and whether it may run.

On Linux the supervisor guarantees this. When a command has killed or stopped its supervisor, we find the survivors by
process group, session, ancestry, and the mark in their environment. Elsewhere the supervisor ends only the process
group of the command.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from . import supervisor
from .helper_programs import helper_command
from .redact import redact_text

if sys.platform == "darwin":
    import fcntl

MARK_VARIABLE = "SIDECAR_CALL"
"""The variable that names the call of a process, also for the next sidecar after this one was killed."""

READ_BYTES = 16 * 1024
"""Bytes of one piece of output: what an app can show at once without stutter."""

GATHER_S = 0.05
"""How long small writes are collected into one piece; the user sees no delay."""

TICK_S = 0.1
"""How often a silent command is checked: it may have exited while another process holds its output open."""

LINGER_S = 0.3
"""The end of the output follows the exit of the command at once, unless a background process holds it open."""

SUPERVISOR_S = supervisor.TERM_WAIT_S + 0.3
"""By then a supervisor has ended all that can be ended, even on a busy machine; afterwards we search ourselves."""

SWEEP_S = 0.2
"""For searching all processes of the machine, more than once; and again for the supervisor to exit."""

KILL_ALL_S = 0.5
"""What the shutdown of the process can spare of its two seconds."""

MAX_REST_BYTES = 256 * 1024
"""Bytes that are still read from the pipe of an ended command: more than any pipe holds by itself."""

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")  # a URL with a password
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
}


class ProcessLimits(msgspec.Struct, frozen=True):
    """Processes and threads together, and bytes of memory; 0 is no limit."""

    processes: int = 0
    memory: int = 0


class SupervisedProcess:
    """A started command. `exit_code` is None while it runs, and when its supervisor was killed; a signal counts as in
    a shell, 128 plus its number. `left_behind` counts its surviving processes that we ended. `exceeded` names the
    limit for which it was ended: processes or memory. `confined` says that its wrappers have done their work and
    started it.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], key: str, output: int, status: int, life: int
    ) -> None:
        self.exit_code: int | None = None
        self.left_behind = 0
        self.exceeded: str | None = None
        self.confined = False
        self._process = process
        self._key = key
        self._output, self._status, self._lifeline = output, status, life
        self._told = b""
        self._main = 0
        self._exited_at: float | None = None
        self._keeper_is_done = False
        for descriptor in (output, status):
            os.set_blocking(descriptor, False)

    @property
    def pid(self) -> int:
        """The pid of the supervisor."""
        return self._process.pid

    async def read(self) -> bytes:
        """Return the next piece of output of either stream; empty at the end."""
        # A command that prints without a pause never blocks in here; without this line its turn could not be
        # cancelled.
        await anyio.lowlevel.checkpoint()
        piece = bytearray()
        due = 0.0
        # Reads are not awaited one by one: a piece collects what arrives within GATHER_S, so that the app
        # gets few large pieces instead of many small ones.
        while len(piece) < READ_BYTES and not self._is_over():
            try:
                data = os.read(self._output, READ_BYTES - len(piece))
            except BlockingIOError:
                now = anyio.current_time()
                if piece and now >= due:
                    break
                with anyio.move_on_after(min(TICK_S, due - now) if piece else TICK_S):
                    await anyio.wait_readable(self._output)
                continue
            if not data:
                break
            if not piece:
                due = anyio.current_time() + GATHER_S
            piece += data
        # A wrapper reports before the command can write: what is known of the piece is known now.
        self._listen()
        return bytes(piece)

    async def wait(self) -> int | None:
        """Return when the command has exited; it may have closed its output long before."""
        while self._exited_at is None:
            await anyio.wait_readable(self._status)
            self._listen()
        return self.exit_code

    async def end(self) -> bytes:
        """End it with all its descendants, and return its last output. Takes less than a second, whatever hangs."""
        if self._output < 0:
            return b""
        # Shielded: a cancelled turn must not leave processes behind. Every wait in it is bounded.
        with anyio.CancelScope(shield=True):
            self.let_go(alive=True)
            with anyio.move_on_after(SUPERVISOR_S):
                while not self._keeper_is_done and self._process.poll() is None:
                    await anyio.wait_readable(self._status)
                    self._listen()
                while self._process.poll() is None:  # noqa: ASYNC110  it has sent its last line, and exits within milliseconds
                    await anyio.sleep(0.001)
            self._listen()
            if not self._keeper_is_done:
                with anyio.move_on_after(2 * SWEEP_S):
                    await anyio.to_thread.run_sync(self.sweep, abandon_on_cancel=True)
        return self._close()

    def let_go(self, *, alive: bool = False) -> None:
        """Close the lifeline pipe: the supervisor ends everything, and then itself. It deletes the scratch folder
        too, unless we are `alive` to do it.
        """
        if self._lifeline >= 0:
            if alive:
                # This byte says that we live, and delete the scratch folder ourselves.
                with suppress(OSError):  # the supervisor has ended
                    os.write(self._lifeline, b".")
            os.close(self._lifeline)
            self._lifeline = -1

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def find(self) -> set[int]:
        """Return its living processes, without the supervisor."""
        rows = supervisor.process_table()
        ours = {self._main} if self._main else set()
        found = {pid for pid, row in rows.items() if {row.group, row.session, pid} & ours}
        found |= _find_marked({self._key}, rows)
        # The pid of an ended process may have been reused.
        # A command can clear its environment, leave its group or its session, but not its ancestry: what any
        # of them started is searched too.
        tops = found if self.is_gone() else {*found, self.pid}
        found |= {
            pid for top in tops for generation in supervisor.descendants(top, rows) for pid in generation
        }
        return found - {self.pid}

    def sweep(self) -> None:
        """End what a killed, stopped or hanging supervisor has not, and the supervisor with it. Blocking."""
        until = time.monotonic() + SWEEP_S
        # Repeated, because a fork may happen between the search and the signal.
        while time.monotonic() < until and (found := self.find()):
            supervisor.send_signal(found, signal.SIGKILL)
            time.sleep(supervisor.AGAIN_S)
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SWEEP_S)

    def _is_over(self) -> bool:
        """Return whether the command has exited so long ago that only others can hold its output open."""
        self._listen()
        return self._exited_at is not None and anyio.current_time() > self._exited_at + LINGER_S

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._status, 512):
                self._told += data
            # End of file without an `exit` line: the supervisor was killed. It counts as the exit of the command, or
            # a reader would wait for a status that never comes.
            self._exited_at = self._exited_at or anyio.current_time()
        *lines, self._told = self._told.split(b"\n")
        for line in lines:
            word, value = line.split()
            if word == b"started":
                self._main = int(value)
            elif word == b"exit":
                code = int(value)
                self.exit_code = code if code >= 0 else 128 - code
                self._exited_at = anyio.current_time()
            elif word == b"exceeded":
                self.exceeded = value.decode()
            elif word == b"confined":
                self.confined = True
            else:
                self.left_behind = int(value)
                self._keeper_is_done = True

    def _close(self) -> bytes:
        rest = bytearray()
        with suppress(BlockingIOError):
            while len(rest) < MAX_REST_BYTES and (data := os.read(self._output, READ_BYTES)):
                rest += data
        os.close(self._output)
        os.close(self._status)
        self._output = self._status = -1
        return bytes(rest)


_children: set[SupervisedProcess] = set()
"""What `kill_all` ends. Each is listed from its start until nothing of it is left."""


@asynccontextmanager
async def running(
    argv: Sequence[str],
    *,
    folder: int,
    environ: Mapping[str, str],
    key: str,
    wrappers: int = 0,
    scratch: str | None = None,
    limits: ProcessLimits | None = None,
) -> AsyncIterator[SupervisedProcess]:
    """Start `argv` in the folder of the descriptor `folder`; at the end of the context nothing of it is left.

    `key` is the mark that it carries. `wrappers` counts the processes in front of the command that only wrap it
    (`Child.confined`).
    `scratch` is a folder that its supervisor deletes when we have died. `limits` apply to it and all its descendants.
    """
    most = f"{limits.processes},{limits.memory}" if limits else ""
    child = _start(argv, folder, {**environ, MARK_VARIABLE: key}, key, [str(wrappers), scratch or "", most])
    # With no await since the start: `kill_all` must know every child that lives.
    _children.add(child)
    try:
        yield child
    finally:
        await child.end()
        _children.discard(child)


def kill_all() -> None:
    """End every command, in at most `KILL_ALL_S` and without an event loop: for the shutdown of the process."""
    children = list(_children)
    for child in children:
        child.let_go()
    # All lifelines are closed first, then waited for together: one by one, ten commands would take ten
    # times as long.
    until = time.monotonic() + KILL_ALL_S - SWEEP_S / 2
    while not all(child.is_gone() for child in children) and time.monotonic() < until:
        time.sleep(supervisor.AGAIN_S)
    for child in children:
        if not child.is_gone():
            supervisor.send_signal([*child.find(), child.pid], signal.SIGKILL)


def reap_orphans(keys: Iterable[str]) -> int:
    """End the surviving processes of calls of a dead sidecar; return their number. Blocking.

    Their supervisors have ended them within a second, unless those were killed as well.
    """
    wanted = set(keys)
    ended: set[int] = set()
    until = time.monotonic() + SWEEP_S
    while wanted and (found := _find_marked(wanted, supervisor.process_table())):
        ended |= found
        supervisor.send_signal(found, signal.SIGKILL)
        if time.monotonic() > until:
            break
        time.sleep(supervisor.AGAIN_S)
    return len(ended)


def clean_environment(environ: Mapping[str, str], added: Collection[str] = ()) -> dict[str, str]:
    """Return our environment for a command: without secrets and our own settings, and without prompts and pagers.

    A secret is a variable with the name of one, a URL with a password, and whatever contains a key that we know.
    Variables that the user has `added` are kept, except those with such keys.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not (
            name.startswith("SIDECAR_")
            or name in ("PWD", "OLDPWD")
            or (name not in added and (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value)))
            or redact_text(value) != value
        )
    }
    return kept | _QUIET


class FolderGone(FileNotFoundError):
    """The open folder was removed or exchanged."""


def real_path(folder: int) -> str:
    """Return the current path of the folder of a descriptor; raise FileNotFoundError when it is unknown or deleted."""
    try:
        if sys.platform == "darwin":
            found = os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        else:
            found = os.readlink(f"/proc/self/fd/{folder}")
        here, there = os.fstat(folder), os.stat(found)
    except OSError as error:
        raise FolderGone("the folder is gone") from error
    if not stat.S_ISDIR(here.st_mode) or (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        raise FolderGone("the folder is gone")
    return found


def _find_marked(keys: set[str], pids: Iterable[int]) -> set[int]:
    """Return those that carry the mark of one of the calls; never ourselves, because a command may have started us."""
    marks = {f"{MARK_VARIABLE}={key}".encode() for key in keys}
    parts = tuple(mark + b"/" for mark in marks)
    found = set()
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().split(b"\0")
            if any(word in marks or word.startswith(parts) for word in words):
                found.add(pid)
    return found - {os.getpid()}


def _start(
    argv: Sequence[str], folder: int, environ: dict[str, str], key: str, orders: Sequence[str]
) -> SupervisedProcess:
    """Start the supervisor; `orders` are its further arguments."""
    where = real_path(folder)
    with ExitStack() as theirs, ExitStack() as ours:
        pipes = [os.pipe() for _ in range(3)]
        (output, speak), (status, tell), (hold, lifeline) = pipes
        for descriptor in (speak, tell, hold):
            theirs.callback(os.close, descriptor)
        for descriptor in (output, status, lifeline):
            ours.callback(os.close, descriptor)
        process = subprocess.Popen(
            # Isolated and without site: nothing in the environment or the folder can influence its start.
            [*helper_command("sidecar.system.supervisor"), str(hold), str(tell), *orders, *argv],
            stdin=subprocess.DEVNULL,
            stdout=speak,
            stderr=speak,
            # By descriptor where possible: the target of the path may change at any moment.
            cwd=f"/proc/self/fd/{folder}" if sys.platform == "linux" else where,
            env={**environ, "PWD": where},
            start_new_session=True,
            pass_fds=(hold, tell),
        )
        # From here the Child owns them; before, a failed start has closed all six ends.
        ours.pop_all()
        return SupervisedProcess(process, key, output, status, lifeline)
