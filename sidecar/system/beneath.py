"""Open and name what lies beneath a folder, whatever others do to the tree meanwhile. Knows no project, no policy.

A path that is checked and then opened loses races, so the check is the opening itself: Linux does it in one
call (`openat2`), elsewhere we go component by component and never let the system follow a link for us. Both
keep one set of rules: a link may lead anywhere beneath the folder; one that is absolute, or climbs out, is
`EXDEV`; a magic link of /proc is refused; more than 40 links are `ELOOP`. To change a folder there is one way
for all systems, by hand (`find_beneath`): what is made in an open folder cannot land in another.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

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
_RENAME_NOREPLACE = 1

MAX_LINKS = 40  # what Linux allows, so that both ways give up at the same chain
MAX_STEPS = (
    20_000  # a link's `..` starts again at the folder: this ends a tree built to make us climb for ever
)
PATH_MAX = 4095  # bytes that the system takes in one call; by hand there is no such limit
_TRIES = 32  # any rename on the machine makes the kernel unsure of a `..`; then by hand, which never is
_SWAPPED = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.EINVAL}  # it became a link, or ceased to be one
# What file systems without hard links, and kernels or sandboxes without the call, say to `link`.
_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class Spot(msgspec.Struct, frozen=True):
    """A name in an open folder: what it was when we looked, which was no link."""

    folder: int
    """A descriptor to pass through; whoever gets the spot closes it."""
    name: bytes
    """`.` where a path ends in a folder that has no name of its own there, as `..` of a link does."""
    found: os.stat_result | None
    way: tuple[bytes, ...]
    """The names from the top to the folder, without links."""
    linked: bool
    """Whether a link led to the name; else the caller has spelled it."""


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


def find_beneath(folder: int, parts: Sequence[bytes], making: Check | None = None) -> Spot:
    """Walk from `folder`, one name at a time, to where `parts` lead; a link's target takes the place of its name.

    The last name may be missing. With `making`, so may the folders before it: they are made, unless it raises
    about the folder to make one in. That is for names the caller spelled; what a link names must be there.
    """
    walk = _Walk(folder, parts, making)
    try:
        for _ in range(MAX_STEPS):
            spot = walk.step()
            if spot is not None:
                return spot
        raise _error(errno.ELOOP)
    except BaseException:
        os.close(walk.here)
        raise


def open_here(folder: int, name: bytes, flags: int, check: Check) -> int:
    """A descriptor of what has this name in an open folder; a link is refused (`ELOOP`)."""
    check(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return _checked(os.open(name, flags | O_NOFOLLOW | _CALM, dir_fd=folder), check)


def rename_new(folder: int, old: bytes, new: bytes) -> None:
    """Give a file another name in its folder; FileExistsError when there is anything of that name.

    One call where the system has it, else a second name, and then the first goes. Only a file system that has
    neither leaves a moment in which a file of the new name would be replaced.
    """
    if _renamed_new(folder, old, new):
        return
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if _look(folder, new) is not None:
            raise _error(errno.EEXIST) from error
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        with suppress(OSError):  # the file has its name; what is left of the old one is not worth a failure
            os.unlink(old, dir_fd=folder)


def sync_folder(folder: int) -> None:
    """Make the folder's names outlast a power cut, where it can be opened for that and the system is able to."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def as_listed(folder: int, names: Sequence[bytes]) -> list[bytes]:
    """The names, none of them a link, as their folders list them: where case does not count, a path may spell
    them otherwise."""
    listed: list[bytes] = []
    here = os.dup(folder)
    try:
        for number, name in enumerate(names, 1):
            listed.append(_as_listed(here, name))
            if number < len(names):
                here = _exchange(here, os.open(name, FOLDER, dir_fd=here))
    finally:
        os.close(here)
    return listed


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
    swapped: OSError | None = None
    for _ in range(_TRIES):
        spot = find_beneath(folder, parts)
        try:
            if spot.found is None:
                raise _error(errno.ENOENT)
            check(spot.found)
            return _checked(os.open(spot.name, flags | O_NOFOLLOW | _CALM, dir_fd=spot.folder), check)
        except OSError as error:
            if error.errno not in _SWAPPED:
                raise
            swapped = error  # someone exchanged it between two calls: look again
        finally:
            os.close(spot.folder)
    raise swapped or _error(errno.ELOOP)


class _Walk:
    """Where a walk by hand has come to, and the names that lie before it. The system follows no link for us."""

    def __init__(self, folder: int, parts: Sequence[bytes], making: Check | None) -> None:
        self._folder = folder
        self._making = making
        self._pending = list(reversed(parts))
        self._own = len(parts)  # the caller's names among them; those that links brought lie on top
        self._done: list[bytes] = []
        self._links = 0
        self.here = os.dup(folder)

    def step(self) -> Spot | None:
        """Take the next name. A spot, when it was the last."""
        if not self._pending:
            return Spot(self.here, b".", os.fstat(self.here), tuple(self._done), False)
        name = self._pending.pop()
        spelled = len(self._pending) < self._own
        self._own = min(self._own, len(self._pending))
        if name in (b"", b"."):
            return None
        if name == b"..":
            self._climb()
            return None
        found = _look(self.here, name)
        link = found is not None and stat.S_ISLNK(found.st_mode)
        if not self._pending and not link and (found or spelled):
            return Spot(self.here, name, found, tuple(self._done), not spelled)
        if found is None:
            self._make(name, spelled)
            return None
        if not (link or stat.S_ISDIR(found.st_mode)):
            raise _error(errno.ENOTDIR)
        try:
            self._pass(name, link=link)
        except OSError as error:
            if error.errno not in _SWAPPED or self._links > MAX_LINKS:
                raise
            # Someone exchanged it between two calls: look again.
            self._again(name, spelled)
        return None

    def _pass(self, name: bytes, *, link: bool) -> None:
        if not link:
            self.here = _exchange(self.here, os.open(name, FOLDER, dir_fd=self.here))
            self._done.append(name)
            return
        target = os.readlink(name, dir_fd=self.here)
        self._links += 1
        if self._links > MAX_LINKS:
            raise _error(errno.ELOOP)
        if target.startswith(b"/"):
            raise _error(errno.EXDEV)
        self._pending.extend(reversed(target.split(b"/")))

    def _make(self, name: bytes, spelled: bool) -> None:
        if self._making is None or not spelled:
            raise _error(errno.ENOENT)
        self._making(os.fstat(self.here))
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.here)
        sync_folder(self.here)
        self._again(name, spelled)

    def _climb(self) -> None:
        # The parent of an open folder may have changed; the way from the top cannot lead out.
        if not self._done:
            raise _error(errno.EXDEV)
        self._pending.extend(reversed(self._done[:-1]))
        self._done.clear()
        self.here = _exchange(self.here, os.dup(self._folder))

    def _again(self, name: bytes, spelled: bool) -> None:
        self._pending.append(name)
        if spelled:
            self._own = len(self._pending)


def _renamed_new(folder: int, old: bytes, new: bytes) -> bool:
    """Whether the system could do it in one call; False when it has none for this file system."""
    try:
        import ctypes

        rename = _libc().renameat2
    except (ImportError, AttributeError):
        return False
    if rename(folder, ctypes.c_char_p(old), folder, ctypes.c_char_p(new), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
        raise _error(number)
    return False


def _look(here: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _as_listed(here: int, name: bytes) -> bytes:
    found, other = os.stat(name, dir_fd=here, follow_symlinks=False), os.fsdecode(name).swapcase()
    twin = _look(here, os.fsencode(other))
    if os.fsencode(other) == name or twin is None or twin.st_ino != found.st_ino:
        return name
    fd = os.open(".", os.O_RDONLY, dir_fd=here)
    try:
        with os.scandir(fd) as entries:
            names = {os.fsencode(entry.name) for entry in entries if entry.inode() == found.st_ino}
    finally:
        os.close(fd)
    return name if name in names or not names else min(names)


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
