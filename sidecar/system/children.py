"""Commands that run as children: started with a clean environment, read as they speak, ended with all they started.

Each has a keeper (`keeper`) between us and it, which ends the whole tree when we say so, and also when we are no more.
Its bounds: a command that ended on its own waits `LINGER_S` for the rest of its output; ending one takes less than
`KEEPER_S` and twice `SWEEP_S`. What the command is, and whether it may run, is not known here.

The promise is kept by the keeper on Linux. When a command has killed or stopped its keeper, we find what is left by
its process group, its session, what is beneath it, and the mark in its environment. Elsewhere the keeper ends the
command's process group alone.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import anyio.to_thread

from . import keeper
from .redact import redacted

MARK = "SIDECAR_CALL"
"""The variable that tells whose a process is, also to the next sidecar after this one was killed."""

PIECE = 16 * 1024
"""Bytes of one piece of output: what an app shows at once without a stutter."""

GATHER_S = 0.05
"""How long small writes are collected into one piece; a person sees no delay."""

TICK_S = 0.1
"""How often a silent command is looked at: whether it has ended while another process holds its output open."""

LINGER_S = 0.3
"""The end of the output follows the end of the command at once, unless a process in the background holds it."""

KEEPER_S = keeper.POLITE_S + 0.3
"""When a keeper has ended all that can be ended, on a busy machine too; then we look ourselves."""

SWEEP_S = 0.2
"""For looking through all processes of the machine, more than once; and again for the keeper to be gone."""

KILL_ALL_S = 0.5
"""What the process's way out can spare of its two seconds."""

REST = 256 * 1024
"""Bytes that are still taken from the pipe of a command that was ended: more than any pipe holds by itself."""

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")  # an address with a password in it
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
}


class Child:
    """A command that was started. `exit_code` is None while it runs, and when its keeper was killed; a signal that
    ended it counts as in a shell, 128 and its number. `left_behind` counts the processes that it left and we ended.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], key: str, output: int, status: int, life: int
    ) -> None:
        self.exit_code: int | None = None
        self.left_behind = 0
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
        """The keeper's."""
        return self._process.pid

    async def read(self) -> bytes:
        """The next piece of what it says on either stream; empty when there will be no more."""
        await anyio.lowlevel.checkpoint()
        piece = bytearray()
        due = 0.0
        while len(piece) < PIECE and not self._is_over():
            try:
                data = os.read(self._output, PIECE - len(piece))
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
        return bytes(piece)

    async def wait(self) -> int | None:
        """Return when the command has ended; it may have closed its output long before."""
        while self._exited_at is None:
            await anyio.wait_readable(self._status)
            self._listen()
        return self.exit_code

    async def end(self) -> bytes:
        """End it and all that it started, and return what it said last. Takes less than a second, whatever hangs."""
        if self._output < 0:
            return b""
        with anyio.CancelScope(shield=True):
            self.let_go(alive=True)
            with anyio.move_on_after(KEEPER_S):
                while not self._keeper_is_done and self._process.poll() is None:
                    await anyio.wait_readable(self._status)
                    self._listen()
                while self._process.poll() is None:  # noqa: ASYNC110  it has said its last word, and is nearly gone
                    await anyio.sleep(0.001)
            self._listen()
            if not self._keeper_is_done:
                with anyio.move_on_after(2 * SWEEP_S):
                    await anyio.to_thread.run_sync(self.sweep, abandon_on_cancel=True)
        return self._close()

    def let_go(self, *, alive: bool = False) -> None:
        """Close the lifeline: the keeper ends everything, and then itself. It deletes the scratch folder too, unless we
        are `alive` to do it."""
        if self._lifeline >= 0:
            if alive:
                with suppress(OSError):  # the keeper is gone
                    os.write(self._lifeline, b".")
            os.close(self._lifeline)
            self._lifeline = -1

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def find(self) -> set[int]:
        """What is alive of it, but for the keeper."""
        rows = keeper.table()
        ours = {self._main} if self._main else set()
        found = {pid for pid, row in rows.items() if {row.group, row.session, pid} & ours}
        found |= _marked({self._key}, rows)
        # The pid of one that is gone may be another's by now.
        tops = found if self.is_gone() else {*found, self.pid}
        found |= {pid for top in tops for generation in keeper.beneath(top, rows) for pid in generation}
        return found - {self.pid}

    def sweep(self) -> None:
        """End what a keeper that was killed, stopped or hangs has not, and the keeper with it. Blocking."""
        until = time.monotonic() + SWEEP_S
        while time.monotonic() < until and (found := self.find()):
            keeper.send(found, signal.SIGKILL)
            time.sleep(keeper.AGAIN_S)
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SWEEP_S)

    def _is_over(self) -> bool:
        """Whether the command has ended so long ago that only others can be holding its output open."""
        self._listen()
        return self._exited_at is not None and anyio.current_time() > self._exited_at + LINGER_S

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._status, 512):
                self._told += data
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
            else:
                self.left_behind = int(value)
                self._keeper_is_done = True

    def _close(self) -> bytes:
        rest = bytearray()
        with suppress(BlockingIOError):
            while len(rest) < REST and (data := os.read(self._output, PIECE)):
                rest += data
        os.close(self._output)
        os.close(self._status)
        self._output = self._status = -1
        return bytes(rest)


_running: set[Child] = set()
"""What `kill_all` ends. Each is here from its start until nothing of it is left."""


@asynccontextmanager
async def running(
    argv: Sequence[str],
    *,
    folder: int,
    environ: Mapping[str, str],
    key: str,
    wrappers: int = 0,
    scratch: str | None = None,
) -> AsyncIterator[Child]:
    """Start `argv` in the folder of the descriptor `folder`; at the end of the context nothing of it is left.

    `key` is the mark it carries. `wrappers` counts the processes in front of the command that only wrap it. `scratch`
    is a folder that its keeper deletes when we are no more.
    """
    child = _start(argv, folder, {**environ, MARK: key}, key, [str(wrappers), scratch or ""])
    _running.add(child)
    try:
        yield child
    finally:
        await child.end()
        _running.discard(child)


def kill_all() -> None:
    """End every command, in `KILL_ALL_S` at most and without a loop: for the process's own way out."""
    children = list(_running)
    for child in children:
        child.let_go()
    until = time.monotonic() + KILL_ALL_S - SWEEP_S / 2
    while not all(child.is_gone() for child in children) and time.monotonic() < until:
        time.sleep(keeper.AGAIN_S)
    for child in children:
        if not child.is_gone():
            keeper.send([*child.find(), child.pid], signal.SIGKILL)


def survivors(key: str) -> set[int]:
    """The living processes that carry the mark of this call, or of a part of it (`key/part`). Blocking: it looks at
    all processes of the machine."""
    return _marked({key}, keeper.table())


def reap(keys: Iterable[str]) -> int:
    """End what is left of the calls of a sidecar that is no more; tells how many processes that were. Blocking.

    Their keepers have ended them within a second, unless those were killed as well.
    """
    wanted = set(keys)
    ended: set[int] = set()
    until = time.monotonic() + SWEEP_S
    while wanted and (found := _marked(wanted, keeper.table())):
        ended |= found
        keeper.send(found, signal.SIGKILL)
        if time.monotonic() > until:
            break
        time.sleep(keeper.AGAIN_S)
    return len(ended)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Our environment for a command: without secrets and our own settings, and so that nothing asks or pages.

    A secret is what is named like one, an address with a password, and whatever holds a key that we know.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not (
            name.startswith("SIDECAR_")
            or name in ("PWD", "OLDPWD")
            or _SECRET_NAME.search(name)
            or _SECRET_VALUE.search(value)
            or redacted(value) != value
        )
    }
    return kept | _QUIET


def real_path(folder: int) -> str:
    """Where the folder of a descriptor is now; FileNotFoundError when that cannot be told, or it is gone."""
    try:
        if sys.platform == "darwin":
            import fcntl

            found = os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        else:
            found = os.readlink(f"/proc/self/fd/{folder}")
        here, there = os.fstat(folder), os.stat(found)
    except OSError as error:
        raise FileNotFoundError("the folder is gone") from error
    if not stat.S_ISDIR(here.st_mode) or (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        raise FileNotFoundError("the folder is gone")
    return found


def _marked(keys: set[str], pids: Iterable[int]) -> set[int]:
    """Those that carry the mark of one of the calls; never ourselves, who may have been started by a command."""
    marks = {f"{MARK}={key}".encode() for key in keys}
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
) -> Child:
    """`orders` are what the keeper is told besides."""
    where = real_path(folder)
    with ExitStack() as theirs, ExitStack() as ours:
        pipes = [os.pipe() for _ in range(3)]
        (output, speak), (status, tell), (hold, lifeline) = pipes
        for descriptor in (speak, tell, hold):
            theirs.callback(os.close, descriptor)
        for descriptor in (output, status, lifeline):
            ours.callback(os.close, descriptor)
        process = subprocess.Popen(
            # Isolated and without site: nothing in the environment or the folder has a say in how it starts.
            [sys.executable, "-I", "-S", keeper.__file__, str(hold), str(tell), *orders, *argv],
            stdin=subprocess.DEVNULL,
            stdout=speak,
            stderr=speak,
            # By descriptor where that can be: what the path leads to may change at any moment.
            cwd=f"/proc/self/fd/{folder}" if sys.platform == "linux" else where,
            env={**environ, "PWD": where},
            start_new_session=True,
            pass_fds=(hold, tell),
        )
        ours.pop_all()
        return Child(process, key, output, status, lifeline)
