"""The only way to write a file at a path from outside: it appears complete or not at all, and replaces only a regular
file, if requested, and nothing of the process's own database. Does not know who asked.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from . import own_files
from .confined_open import rename_new
from .safe_open import FileRefused, check_device, own_file_refusal, refusal_for

PRIVATE = 0o600
"""The mode of a new file: only its owner may read it."""

_FOLDER: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_BY_DESCRIPTOR = {os.open, os.stat, os.rename, os.unlink} <= os.supports_dir_fd
_MAX_DEPTH = 4096
"""Folders above a file: more than a path of the maximum length can name."""


def write_whole(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write a temporary file in the same folder, make it durable and rename it.

    An existing file is replaced only with `overwrite`, and keeps its permission bits; a new one is readable by its
    owner only. A link is never followed: its target may be anybody's. Nothing is written into the folder of our own
    database, since SQLite acts on what it finds there.

    FileRefused means that nothing was changed. A process that is killed leaves at most a `.sidecar-*.tmp`.
    """
    try:
        target = _Target(path, overwrite)
        try:
            target.write(data)
        finally:
            target.close()
    except (OSError, ValueError) as error:
        raise refusal_for(error) from error


def write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def keep_owner(fd: int, was: os.stat_result) -> None:
    """Only root can change the owner of a file; anybody can change the group to one of their own."""
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        try:
            os.fchown(fd, was.st_uid, was.st_gid)
        except OSError:
            with suppress(OSError):
                os.fchown(fd, -1, was.st_gid)


def preserved_mode(fd: int, was: os.stat_result, mode: int) -> int:
    """Return the mode for new bytes; in another group than before, the group gets the bits of others."""
    return mode if os.fstat(fd).st_gid == was.st_gid else mode & ~0o070 | (mode & 0o007) << 3


def sync_folder(folder: str) -> None:
    """Without this a new name may be lost in a power failure. Windows cannot open a folder for it."""
    if os.name == "nt":
        return
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class _Target:
    """The name to write in its folder, which is held open: renaming the path meanwhile changes nothing."""

    def __init__(self, path: str, overwrite: bool) -> None:
        parent, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise FileRefused("kind", "it is not a regular file")
        self._path = path
        self._parent = parent
        self._overwrite = overwrite
        self._folder = os.open(parent, _FOLDER) if _BY_DESCRIPTOR else None
        self._name = path if self._folder is None else name

    def close(self) -> None:
        if self._folder is not None:
            os.close(self._folder)

    def write(self, data: bytes) -> None:
        self._check_folder()
        old = self._look()
        temp = f".sidecar-{os.urandom(8).hex()}.tmp"
        if self._folder is None:
            temp = os.path.join(self._parent, temp)
        fd = os.open(temp, _CREATE, PRIVATE, dir_fd=self._folder)
        try:
            try:
                write_all(fd, data)
                if old is not None and self._folder is not None:
                    keep_owner(fd, old)
                    # After the owner: changing that clears bits.
                    os.fchmod(fd, preserved_mode(fd, old, stat.S_IMODE(old.st_mode) & 0o777))
                os.fsync(fd)
            finally:
                os.close(fd)
            self._put(temp)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=self._folder)
            raise
        self._sync()

    def _put(self, temp: str) -> None:
        """Rename the written file. Both ways replace a name and follow no link that was created meanwhile."""
        if self._overwrite:
            # Looked at again, as late as possible: a link may have been put here while the data was written.
            self._look()
            os.replace(temp, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            return
        try:
            if self._folder is None:
                os.rename(temp, self._name)  # on Windows it replaces nothing
            else:
                rename_new(self._folder, os.fsencode(temp), os.fsencode(self._name))
        except FileExistsError:
            self._look()
            raise FileRefused("exists", "it is there already") from None

    def _look(self) -> os.stat_result | None:
        """Return the state of the existing file; None when there is none. FileRefused when it must not be replaced."""
        try:
            found = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            self._check_link()
        elif own_files.is_own(found):
            raise own_file_refusal()
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused("kind", "it is not a regular file")
        if not self._overwrite:
            raise FileRefused("exists", "it is there already")
        self._check_writable()
        return found

    def _check_link(self) -> None:
        with suppress(FileNotFoundError):
            if own_files.is_own(os.stat(self._name, dir_fd=self._folder)):
                raise own_file_refusal()
        if not self._overwrite:
            raise FileRefused("exists", "it is there already, as a link, which is never replaced")
        raise FileRefused("link", "it is a link: name the file that it leads to, or another one")

    def _check_writable(self) -> None:
        """Refuse a file that the user cannot write, although the folder would allow replacing it: whoever marked it
        read-only meant that.
        """
        able = os.access in os.supports_effective_ids and self._folder is not None
        if able and not os.access(self._name, os.W_OK, dir_fd=self._folder, effective_ids=True):
            raise FileRefused("permission", os.strerror(errno.EACCES))

    def _check_folder(self) -> None:
        """Refuse the folder of our database, one in it, and those of the kernel."""
        if self._folder is None:
            here = os.path.realpath(self._parent)
            # The parents too: a folder below that of the database is part of it.
            while here != (here := os.path.dirname(last := here)):
                _check_device(os.stat(last))
            return
        fd = os.dup(self._folder)
        try:
            check_device(os.fstat(fd))
            for _ in range(_MAX_DEPTH):
                found = os.fstat(fd)
                _check_device(found)
                # By descriptors: a path could be exchanged between two steps of the climb.
                above = os.open("..", _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = above
                if os.path.samestat(found, os.fstat(fd)):
                    return
        finally:
            os.close(fd)

    def _sync(self) -> None:
        """The file is in place: a failure from here on must not be reported as one."""
        with suppress(OSError):
            if self._folder is None:
                sync_folder(self._parent)
                return
            fd = os.open(".", os.O_RDONLY, dir_fd=self._folder)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _check_device(folder: os.stat_result) -> None:
    if own_files.is_own_folder(folder):
        raise FileRefused("own_file", "it lies in the folder of the sidecar's own database")
