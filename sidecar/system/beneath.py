"""Open what lies beneath a folder, whatever others do to the tree meanwhile. Knows no project and no policy.

A path that is checked and then opened loses races, so the check is the opening itself: Linux does it in one
call (`openat2`), elsewhere we go component by component and never let the system follow a link for us. Both
keep one set of rules: a link may lead anywhere beneath the folder; one that is absolute, or climbs out, is
`EXDEV`; a magic link of /proc is refused; more than 40 links are `ELOOP`.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

Check = Callable[[os.stat_result], None]
"""Raises when the file may not be opened. It is asked before the file is opened, and about what was."""

SUPPORTED = os.open in os.supports_dir_fd and os.readlink in os.supports_dir_fd
"""Windows has no descriptors of folders to start from; there is no twin for it yet."""

O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# A folder that we only pass through need not be readable; O_PATH asks for no more than passing.
FOLDER: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW
# Opening must neither wait for a FIFO's writer nor make a terminal ours.
_CALM: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

_OPENAT2 = 437  # the same number on all architectures that Python has wheels for
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08

MAX_LINKS = 40  # what Linux allows, so that both ways give up at the same chain
MAX_STEPS = (
    20_000  # a link's `..` starts again at the folder: this ends a tree built to make us climb for ever
)
PATH_MAX = 4095  # bytes that the system takes in one call; by hand there is no such limit
_TRIES = 32  # any rename on the machine makes the kernel unsure of a `..`; then by hand, which never is
_SWAPPED = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.EINVAL}  # it became a link, or ceased to be one


def open_beneath(
    folder: int, parts: Sequence[bytes], flags: int, check: Check, *, by_hand: bool = False
) -> int:
    """A descriptor of `parts` beneath `folder`; an OSError when there is none, or what `check` raises."""
    path = b"/".join(parts) or b"."
    if not by_hand and len(path) <= PATH_MAX and has_openat2():
        pin = _pin(folder, path)
        if pin is not None:
            try:
                return _open_pinned(pin, flags, check)
            except (FileNotFoundError, PermissionError):
                pass  # /proc is not mounted, or is not ours to read; by hand needs none
            finally:
                os.close(pin)
    return _by_hand(folder, parts, flags, check)


@functools.cache
def has_openat2() -> bool:
    """Whether the kernel has the call and lets us use it. Asked once, when a path is first opened."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, b"/"))  # AT_FDCWD: an absolute path is never beneath it
    except OSError as error:
        # ENOSYS from an old kernel, EPERM from a sandbox: only the rule's own refusal proves the rule.
        return error.errno == errno.EXDEV
    except ImportError:
        pass  # a Python that was built without ctypes
    return False


def _openat2(folder: int, path: bytes) -> int:
    """A descriptor that only holds the place (O_PATH): nothing is opened, so nothing waits or unlocks."""
    import ctypes

    flags = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
    how = struct.pack("=QQQ", flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(len(how))
    fd = int(
        _libc().syscall(
            ctypes.c_long(_OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(path), ctypes.c_char_p(how), size
        )
    )
    if fd < 0:
        raise _error(ctypes.get_errno())
    return fd


@functools.cache
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _pin(folder: int, path: bytes) -> int | None:
    for _ in range(_TRIES):
        try:
            return _openat2(folder, path)
        except (BlockingIOError, InterruptedError):
            continue
    return None


def _open_pinned(pin: int, flags: int, check: Check) -> int:
    """Open the very inode that `pin` holds. /proc is ours here: the path is made of a number alone."""
    check(os.fstat(pin))
    return _checked(os.open(f"/proc/self/fd/{pin}", flags | _CALM), check)


def _by_hand(folder: int, parts: Sequence[bytes], flags: int, check: Check) -> int:
    """Walk from `folder`, one name at a time; a link's target takes the place of its name."""
    pending = list(reversed(parts))
    done: list[bytes] = []
    links = 0
    here = os.dup(folder)
    try:
        for _ in range(MAX_STEPS):
            if not pending:
                check(os.fstat(here))
                return _checked(os.open(".", flags | _CALM, dir_fd=here), check)
            name = pending.pop()
            if name in (b"", b"."):
                continue
            if name == b"..":
                # The parent of an open folder may have changed; the way from the top cannot lead out.
                if not done:
                    raise _error(errno.EXDEV)
                pending.extend(reversed(done[:-1]))
                done.clear()
                here = _exchange(here, os.dup(folder))
                continue
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            link, last = stat.S_ISLNK(found.st_mode), not pending
            if not (link or last or stat.S_ISDIR(found.st_mode)):
                raise _error(errno.ENOTDIR)
            try:
                if link:
                    target = os.readlink(name, dir_fd=here)
                    links += 1
                    if links > MAX_LINKS:
                        break
                    if target.startswith(b"/"):
                        raise _error(errno.EXDEV)
                    pending.extend(reversed(target.split(b"/")))
                elif last:
                    check(found)
                    return _checked(os.open(name, flags | O_NOFOLLOW | _CALM, dir_fd=here), check)
                else:
                    here = _exchange(here, os.open(name, FOLDER, dir_fd=here))
                    done.append(name)
            except OSError as error:
                if error.errno not in _SWAPPED:
                    raise
                pending.append(name)  # someone exchanged it between two calls: look again
        raise _error(errno.ELOOP)
    finally:
        os.close(here)


def _checked(fd: int, check: Check) -> int:
    found = os.fstat(fd)
    try:
        check(found)
    except BaseException:
        # Closing any descriptor of a file drops this process's locks on it, and our database lives by its
        # locks. So a file that was slipped in between the checks stays open: better a lost number.
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
        raise
    return fd


def _exchange(old: int, new: int) -> int:
    os.close(old)
    return new


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
