"""Who a process is, and whether it still lives. Linux reads /proc; elsewhere less is known, and the clock decides."""

from __future__ import annotations

import os
import sys

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """A process, told apart from every other that ever had its pid."""

    boot: str
    namespace: str
    pid: int
    started: int


def current() -> Identity:
    pid = os.getpid()
    return Identity(_boot_id(), _pid_namespace(), pid, _start_time(pid) or 0)


def is_alive(process: Identity) -> bool | None:
    """Whether that very process runs; None when this one cannot see it."""
    if process.boot != _boot_id():
        return False
    if process.namespace != _pid_namespace():
        return None
    if sys.platform == "linux":
        return _start_time(process.pid) == process.started
    return _answers_signals(process.pid)


def _start_time(pid: int) -> int | None:
    """Clock ticks from boot to the process's start; None when it is gone or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def pid_exists(pid: int) -> bool:
    """Whether some process has this pid; True where that cannot be told."""
    return _answers_signals(pid) is not False


def _answers_signals(pid: int) -> bool | None:
    if sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
