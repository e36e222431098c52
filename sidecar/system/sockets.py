"""Find Unix sockets with a path in the file system, so that the sandbox can cover them.

A read-only mount does not prevent connecting to a socket. The kernel lists the sockets of this network namespace;
those that were mounted into a container from elsewhere are in the list of mounts. `survey` finds others in the
folders that a command gets.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

MAX_SOCKETS = 500
"""Sockets that are covered: each is a mount. A desktop has about a hundred."""

_ROW = re.compile(r"(?:\S+ ){6} *(\d+) (.+)")
_OCTAL = re.compile(r"\\([0-7]{3})")


def find_sockets() -> list[str]:
    """Return the real paths of sockets on this machine, as far as the kernel lists them. Blocking."""
    found = dict.fromkeys(path for path in (*_kernel_sockets(), *_mounted_sockets()) if is_socket(path))
    return [os.path.realpath(path) for path in list(found)[:MAX_SOCKETS]]


def is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _kernel_sockets() -> Iterator[str]:
    """Return those that the kernel lists; one bound to a relative name is searched in the working folder of its
    process.
    """
    relative: dict[str, str] = {}
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as file:
        next(file, None)
        for line in file:
            match = _ROW.match(line.rstrip("\n"))
            if match is None or match[2].startswith("@"):  # without a name, or an abstract one
                continue
            if match[2].startswith("/"):
                yield match[2]
            else:
                relative[f"socket:[{match[1]}]"] = match[2]
    if relative:
        yield from _resolve_relative(relative)


def _resolve_relative(relative: dict[str, str]) -> Iterator[str]:
    """Join relative names with the working folder of a process that has the socket open, if that is visible."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                name = relative.get(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
                if name is not None:
                    yield os.path.join(os.readlink(f"/proc/{pid}/cwd"), name)


def _mounted_sockets() -> Iterator[str]:
    with suppress(OSError), open("/proc/self/mountinfo", errors="surrogateescape") as file:
        for line in file:
            # A socket can be a mount point of its own, as containers mount the one of their daemon; the kernel's
            # list then has its outer path.
            yield _OCTAL.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[4])
