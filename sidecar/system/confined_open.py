"""Open and name what is beneath a folder, whatever others do to the tree meanwhile. Knows no project, no policy.

Checking a path and then opening it is a race (TOCTOU), so the check is the opening itself: Linux does it in one call
(`openat2`), elsewhere we walk component by component and never let the system follow a link for us. Both have the
same rules: a link may lead anywhere beneath the folder; one that is absolute, or climbs out, is `EXDEV`; a magic link
of /proc is refused; more than 40 links are `ELOOP`. Changes use the manual walk on all systems (`find_beneath`): what
is created in an open folder cannot end up in another.
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
from typing import TYPE_CHECKING, Any

import msgspec

from .lazy import lazy_module
from .safe_open import OPEN_FLAGS, check_descriptor, open_pinned

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = lazy_module("ctypes")

FileCheck = Callable[[os.stat_result], None]
"""Raises when the file must not be opened. Called before the file is opened, and about what was opened."""

SUPPORTED = os.open in os.supports_dir_fd and os.readlink in os.supports_dir_fd
"""Windows has no descriptors of folders to start from; there is no equivalent for it yet."""

O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# A folder that is only passed through need not be readable; O_PATH requires no read permission.
FOLDER: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW

_OPENAT2 = 437  # the same number on all architectures that Python has wheels for
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1

MAX_LINKS = 40  # the limit of Linux, so that both ways give up at the same chain
MAX_STEPS = (
    20_000  # the `..` of a link restarts at the folder: this ends a tree built to make us climb forever
)
PATH_MAX = 4095  # bytes that the system accepts in one call; the manual walk has no such limit
_TRIES = 32  # a rename anywhere may fail a `..` with EAGAIN; the manual walk never does
_RACE_ERRORS = {
    errno.ELOOP,
    errno.ENOTDIR,
    errno.EMLINK,
    errno.EINVAL,
}  # it became a link, or is no longer one
# The errors of `link` on file systems without hard links, and on kernels or sandboxes without the call.
_NO_HARD_LINK_ERRORS = {
    errno.EPERM,
    errno.EMLINK,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.EINVAL,
}


class HeldEntry(msgspec.Struct, frozen=True):
    """A name in an open folder, with its state when it was checked, which was not a link."""

    folder: int
    """A descriptor for path lookups; the receiver closes it."""
    name: bytes
    """`.` when a path ends in a folder that has no name of its own there, such as the `..` of a link."""
    found: os.stat_result | None
    way: tuple[bytes, ...]
    """The names from the top to the folder, without links."""
    linked: bool
    """Whether a link led to the name; otherwise it is the caller's spelling."""


def open_beneath(
    folder: int, parts: Sequence[bytes], flags: int, check: FileCheck, *, by_hand: bool = False
) -> int:
    """Return a descriptor of `parts` beneath `folder`; raise OSError when there is none, or what `check` raises."""
    path = b"/".join(parts) or b"."
    if not by_hand and len(path) <= PATH_MAX and has_openat2():
        # Pinned first, then checked, then opened through /proc: a device or a FIFO is never opened, which
        # alone may block or act.
        pin = _pin(folder, path)
        if pin is not None:
            try:
                return open_pinned(pin, flags, check)
            except (FileNotFoundError, PermissionError):
                pass  # /proc is not mounted or not readable; the manual walk does not need it
            finally:
                os.close(pin)
    return _open_step_by_step(folder, parts, flags, check)


def find_beneath(folder: int, parts: Sequence[bytes], making: FileCheck | None = None) -> HeldEntry:
    """Walk from `folder`, one name at a time, to where `parts` lead; the target of a link replaces its name.

    The last name may be missing. With `making`, so may the folders before it: they are created, unless it raises
    about the parent folder. That applies to names from the caller; what a link names must exist.
    """
    walk = _Walk(folder, parts, making)
    try:
        for _ in range(MAX_STEPS):
            spot = walk.step()
            if spot is not None:
                return spot
        raise _error(errno.ELOOP)
    except BaseException:
        # On success the entry carries this descriptor out; only then must it stay open.
        os.close(walk.here)
        raise


def open_here(folder: int, name: bytes, flags: int, check: FileCheck) -> int:
    """Return a descriptor of this name in an open folder; a link is refused (`ELOOP`)."""
    # Twice: before, so that no device is opened; after, because the name may have been exchanged in
    # between.
    check(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return check_descriptor(os.open(name, flags | O_NOFOLLOW | OPEN_FLAGS, dir_fd=folder), check)


def rename_new(folder: int, old: bytes, new: bytes) -> None:
    """Rename a file in its folder; raise FileExistsError when the new name exists.

    One call where the system has it, else a hard link and then an unlink. Only on a file system that supports neither
    is there a moment in which a file of the new name would be replaced.
    """
    if _renamed_new(folder, old, new):
        return
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK_ERRORS:
            raise
        # Not atomic, and the best that this file system offers.
        if _lstat(folder, new) is not None:
            raise _error(errno.EEXIST) from error
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        with suppress(OSError):  # the file has its name; failing to remove the old one is not an error
            os.unlink(old, dir_fd=folder)


def sync_folder(folder: int) -> None:
    """Make the names of the folder durable, if it can be opened for that and the system supports it."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def names_on_disk(folder: int, names: Sequence[bytes]) -> list[bytes]:
    """Return the names, none of them a link, as their folders list them: on a case-insensitive file system a path may
    spell them differently.
    """
    listed: list[bytes] = []
    here = os.dup(folder)
    try:
        for number, name in enumerate(names, 1):
            listed.append(_name_on_disk(here, name))
            if number < len(names):
                here = _exchange(here, os.open(name, FOLDER, dir_fd=here))
    finally:
        os.close(here)
    return listed


@functools.cache
def has_openat2() -> bool:
    """Return whether the kernel has the call and permits it. Checked once, when a path is first opened."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, b"/"))  # AT_FDCWD: an absolute path is never beneath it
    except OSError as error:
        # ENOSYS from an old kernel, EPERM from a sandbox: only the EXDEV of the rule itself proves that it works.
        return error.errno == errno.EXDEV
    except ImportError:
        pass  # a Python without ctypes
    return False


def _openat2(folder: int, path: bytes) -> int:
    """Return a descriptor that only pins the file (O_PATH): nothing is opened, so nothing blocks or releases locks."""
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


def _open_step_by_step(folder: int, parts: Sequence[bytes], flags: int, check: FileCheck) -> int:
    swapped: OSError | None = None
    for _ in range(_TRIES):
        spot = find_beneath(folder, parts)
        try:
            if spot.found is None:
                raise _error(errno.ENOENT)
            check(spot.found)
            return check_descriptor(
                os.open(spot.name, flags | O_NOFOLLOW | OPEN_FLAGS, dir_fd=spot.folder), check
            )
        except OSError as error:
            if error.errno not in _RACE_ERRORS:
                raise
            swapped = error  # it was replaced between two calls: try again
        finally:
            os.close(spot.folder)
    raise swapped or _error(errno.ELOOP)


class _Walk:
    """The position of a manual walk, and the names still to come. The system never follows a link for us."""

    def __init__(self, folder: int, parts: Sequence[bytes], making: FileCheck | None) -> None:
        self._folder = folder
        self._making = making
        self._pending = list(reversed(parts))
        self._own = len(parts)  # how many are the caller's names; those from links are on top
        self._done: list[bytes] = []
        self._links = 0
        self.here = os.dup(folder)

    def step(self) -> HeldEntry | None:
        """Take the next name; return the entry when it was the last."""
        if not self._pending:
            return HeldEntry(self.here, b".", os.fstat(self.here), tuple(self._done), False)
        name = self._pending.pop()
        spelled = len(self._pending) < self._own
        self._own = min(self._own, len(self._pending))
        if name in (b"", b"."):
            return None
        if name == b"..":
            self._climb()
            return None
        found = _lstat(self.here, name)
        link = found is not None and stat.S_ISLNK(found.st_mode)
        # Only a caller's own last name may be missing: a link to a missing name is broken, and must not have
        # its target created.
        if not self._pending and not link and (found or spelled):
            return HeldEntry(self.here, name, found, tuple(self._done), not spelled)
        if found is None:
            self._make(name, spelled)
            return None
        if not (link or stat.S_ISDIR(found.st_mode)):
            raise _error(errno.ENOTDIR)
        try:
            self._pass(name, link=link)
        except OSError as error:
            if error.errno not in _RACE_ERRORS or self._links > MAX_LINKS:
                raise
            # It was replaced between two calls: try again.
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
        # The same answer as RESOLVE_BENEATH gives, even where the absolute target is inside.
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
        # The parent of an open folder may have changed; the path from the top cannot lead out.
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
    """Return whether the system did it in one call; False when it has none for this file system."""
    try:
        rename = _libc().renameat2
    except (ImportError, AttributeError):
        return False
    # By name of the libc function, not by number: macOS and old libcs lack it, and then the hard link is
    # used.
    if rename(folder, ctypes.c_char_p(old), folder, ctypes.c_char_p(new), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
        raise _error(number)
    return False


def _lstat(here: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _name_on_disk(here: int, name: bytes) -> bytes:
    found, other = os.stat(name, dir_fd=here, follow_symlinks=False), os.fsdecode(name).swapcase()
    # A folder that answers to both spellings with one inode ignores case; else the list need not be read.
    twin = _lstat(here, os.fsencode(other))
    if os.fsencode(other) == name or twin is None or twin.st_ino != found.st_ino:
        return name
    fd = os.open(".", os.O_RDONLY, dir_fd=here)
    try:
        with os.scandir(fd) as entries:
            names = {os.fsencode(entry.name) for entry in entries if entry.inode() == found.st_ino}
    finally:
        os.close(fd)
    return name if name in names or not names else min(names)


def _exchange(old: int, new: int) -> int:
    os.close(old)
    return new


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
