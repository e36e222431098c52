"""The identity of this process, and whether another one still runs.

On Linux the answer is exact, from /proc. macOS has the boot session and the pid; Windows only an estimate of the boot
time. An uncertain answer is None, and the expiry of a lease decides.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from .lazy import lazy_module

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = lazy_module("ctypes")

ESTIMATED = "about:"
"""The prefix of a boot id that is the wall-clock time of the boot, in seconds."""

CLOCK_DRIFT_S = 60
"""Two estimates of one boot differ by less: clocks drift, and are corrected in small steps."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, distinguished from every other that ever had its pid."""

    boot: str
    namespace: str
    pid: int
    started: int


def current_process() -> ProcessIdentity:
    pid = os.getpid()
    return ProcessIdentity(boot_id(), _pid_namespace(), pid, _start_time(pid) or 0)


def is_alive(process: ProcessIdentity) -> bool | None:
    """Return whether that very process runs; None when this one cannot see it."""
    if (same := is_same_boot(process.boot, boot_id())) is not True:
        return same
    if process.namespace != _pid_namespace():
        return None
    if sys.platform == "linux":
        return _start_time(process.pid) == process.started
    return _answers_signals(process.pid)


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has, with the files that are mapped into it; 0 where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def processes_with_file(path: str) -> dict[int, float]:
    """Return when each process that has this file open was started, in seconds since 1970, by its pid. Empty where that
    cannot be seen; processes of other users are not seen. Blocking.
    """
    if sys.platform != "linux":
        return {}
    path = os.path.realpath(path)
    with open("/proc/uptime", encoding="ascii") as file:
        booted_at = time.time() - float(file.read().split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    started = {pid: _start_time(pid) for pid in pids if _has_open(pid, path)}
    return {pid: booted_at + after / ticks for pid, after in started.items() if after is not None}


def _has_open(pid: int, path: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            with suppress(OSError):  # closed meanwhile
                if os.readlink(f"{folder}/{name}") == path:
                    return True
    except OSError:  # ended, or of another user
        pass
    return False


def parent_programs(most: int = 4) -> list[str]:
    """Return the names of the programs that have started this one, the nearest first; of a script also its own name.
    Empty where that cannot be seen.
    """
    names: list[str] = []
    pid = os.getppid()
    for _ in range(most):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")[:2]
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        names += [
            os.path.splitext(os.path.basename(word.decode(errors="replace")))[0] for word in words if word
        ]
    return names


def _start_time(pid: int) -> int | None:
    """Return the clock ticks from boot to the start of the process; None when it has ended or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # A zombie holds its pid and writes no more: a lease of it is free.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def pid_exists(pid: int) -> bool:
    """Return whether some process has this pid; True when that is unknown."""
    return _answers_signals(pid) is not False


def _answers_signals(pid: int) -> bool | None:
    if sys.platform == "win32":
        return None
    try:
        # Signal 0 is not sent; it only asks whether the process is there.
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_same_boot(one: str, other: str) -> bool | None:
    """Return whether two boot ids are of one boot; None when that is unknown."""
    if not one or not other:
        return None  # an older sidecar, or a system without such an id
    if one.startswith(ESTIMATED) and other.startswith(ESTIMATED):
        apart = abs(int(one.removeprefix(ESTIMATED)) - int(other.removeprefix(ESTIMATED)))
        # A clock that was set meanwhile looks like a reboot, so a difference proves nothing.
        return True if apart <= CLOCK_DRIFT_S else None
    return one == other


@cache
def boot_id() -> str:
    """Return the id of this boot of the machine; empty when there is none."""
    if sys.platform == "linux":
        return _linux_boot_id()
    if sys.platform == "darwin":
        return _darwin_boot_id()
    if sys.platform == "win32":
        return estimated_boot_id(time.time(), _windows_uptime_ms())
    return ""


def estimated_boot_id(now_s: float, uptime_ms: int) -> str:
    """Return the second in which the machine started, by a wall clock that may have been set since."""
    return f"{ESTIMATED}{round(now_s - uptime_ms / 1000)}"


def _linux_boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _darwin_boot_id() -> str:
    """The kernel generates a new UUID at each boot."""
    value = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(value))
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.sysctlbyname(
            b"kern.bootsessionuuid", value, ctypes.byref(size), None, ctypes.c_size_t(0)
        )
    except (OSError, AttributeError):
        return ""
    return "" if failed else value.value.decode("ascii", "replace")


def _windows_uptime_ms() -> int:
    tick_count = ctypes.windll.kernel32.GetTickCount64  # type: ignore[attr-defined,unused-ignore]
    tick_count.restype = ctypes.c_uint64
    return int(tick_count())


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
