"""One file is put in the place of another, whole or not at all: the only way in which tools change a project.

The new bytes are written beside the file, made durable, and take its name in one step; a reader, a crash or a
full disk meets the old bytes or the new ones, never a part. Who asked, and whether he may, is not known here.

What stays: permission bits, owner and group where the user may give them away, extended attributes and access
lists where the file system takes them. What does not: setuid and setgid, which a write takes away in any case,
and other hard links to the file, which keep the old bytes. A link keeps leading where it led: the file at its
end is replaced.

What nothing portable closes: a program that writes between the last look at the old bytes and the step that
replaces or deletes them, some microseconds later, loses what it wrote. A new file has no such moment, where the
system can give a name only if it is free (`system/beneath.rename_new`).

Blocking, and without shared state: call it from any thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from ..model.failures import Refused
from ..system.beneath import O_NOFOLLOW, Check, Spot, open_here, rename_new, sync_folder
from .paths import Workspace, denied, unwritten

MIN_TOKEN = 8
"""Characters of a token: enough that no file of the user's has the name by chance."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
_KEPT = 0o1777
"""The bits of a mode that a changed file keeps: new bytes must not run with the rights of the old ones' owner."""

_UNLIKE = ("security.capability", "security.ima", "security.evm")
"""Attributes that vouch for the old bytes, or give them rights; the new ones have to earn their own."""


def replace(
    workspace: Workspace,
    path: str,
    expected: str | None,
    data: bytes | None,
    *,
    mode: int | None = None,
    token: str,
) -> None:
    """Put `data` where the bytes with the digest `expected` are; without it, nothing may be there yet, and missing
    folders are made. Without `data` the file is deleted; its folders stay. `mode` is for its permission bits,
    else they are those of the old file, or what the user's umask leaves.

    Refused means that the file is as it was. `token` (hexadecimal, 8 characters or more) names what is written
    beside it meanwhile, so that `sweep` finds it when the process dies.
    """
    temp = _temp(token)
    with workspace.hold(path, make=expected is None and data is not None) as spot:
        target = _Target(path, spot, expected, workspace.check(path))
        try:
            with target.matching() as old:
                if data is not None:
                    _put(target, old, data, mode, temp)
                elif spot.linked:
                    raise denied(path, "links", "The path is a link: delete the file that it leads to")
                elif old is not None:
                    os.unlink(spot.name, dir_fd=spot.folder)
        except OSError as error:
            raise unwritten(path, error) from error
        # From here on nothing is refused: the file has changed, whatever else fails.
        sync_folder(spot.folder)


def digest(data: bytes) -> str:
    """The sha256 of the bytes, as `replace` expects it."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def current(workspace: Workspace, path: str, max_bytes: int) -> bytes | None:
    """The bytes that are there now; None when there is no file."""
    try:
        return workspace.read_bytes(path, max_bytes)
    except Refused as refused:
        if refused.name != "not_found":
            raise
        return None


def sweep(workspace: Workspace, path: str, token: str) -> None:
    """Remove what a `replace` that was killed may have left beside `path`. Folders that it made stay. Where the
    path leads to no folder any more, there is nothing to remove."""
    temp = _temp(token)
    with suppress(Refused), workspace.hold(path) as spot:
        with suppress(OSError):
            # What is not a file was not made by us, and a link would be someone's trap.
            if stat.S_ISREG(os.stat(temp, dir_fd=spot.folder, follow_symlinks=False).st_mode):
                os.unlink(temp, dir_fd=spot.folder)
        sync_folder(spot.folder)


class _Target(msgspec.Struct, frozen=True):
    """What is to be replaced: where it is, and the digest that it must have."""

    path: str
    spot: Spot
    expected: str | None
    check: Check

    @contextmanager
    def matching(self) -> Iterator[int | None]:
        """The file that is there now, open, if it has the bytes that are expected; None where there is none, and
        none is expected."""
        folder, name = self.spot.folder, self.spot.name
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            if self.expected is not None:
                raise self._changed(": it is gone") from None
            yield None
            return
        if stat.S_ISLNK(found.st_mode):
            raise self._changed(": it is a link now")
        self.check(found)
        if self.expected is None:
            raise denied(self.path, "exists", "There is a file of that name already")
        self._ask()
        fd = open_here(folder, name, os.O_RDONLY, self.check)
        try:
            if _digest_of(fd) != self.expected:
                raise self._changed()
            yield fd
        finally:
            os.close(fd)

    def _ask(self) -> None:
        """A file that the user may not write is left alone, although its folder would let us put another in its
        place: whoever marked it read-only meant that."""
        folder, name = self.spot.folder, self.spot.name
        if os.access not in os.supports_effective_ids:
            return
        if not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
            if os.fstatvfs(folder).f_flag & os.ST_RDONLY:
                raise denied(self.path, "readonly", "The file system is read-only")
            raise denied(self.path, "permission", "The user may not write it")

    def _changed(self, how: str = "") -> Refused:
        return denied(self.path, "changed", f"The file changed on disk since it was read{how}")


def _put(target: _Target, old: int | None, data: bytes, mode: int | None, temp: bytes) -> None:
    folder, name = target.spot.folder, target.spot.name
    # A new file gets the mode that the umask and the folder's own rules give; any other is closed till it is whole.
    plain = old is None and mode is None
    try:
        fd = os.open(temp, _CREATE, 0o666 if plain else 0o600, dir_fd=folder)
    except FileExistsError as error:
        raise denied(target.path, "exists", f"A leftover is in the way: {os.fsdecode(temp)}") from error
    try:
        try:
            _write(fd, data)
            _dress(fd, old, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        if target.expected is None:
            rename_new(folder, temp, name)
        else:
            with target.matching():
                os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temp, dir_fd=folder)
        raise


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _dress(fd: int, old: int | None, mode: int | None) -> None:
    """Owner first, as a change of owner takes rights away; the mode last, as an access list changes it."""
    if old is not None:
        was = os.fstat(old)
        _own(fd, was)
        _attributes(fd, old)
        mode = was.st_mode if mode is None else mode
        if os.fstat(fd).st_gid != was.st_gid:
            mode = mode & ~0o070 | (mode & 0o007) << 3  # another group than was trusted is anybody
    if mode is not None and stat.S_IMODE(os.fstat(fd).st_mode) != mode & _KEPT:
        os.fchmod(fd, mode & _KEPT)


def _own(fd: int, was: os.stat_result) -> None:
    """Only root gives files away; to a group that one is in, anybody may."""
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        try:
            os.fchown(fd, was.st_uid, was.st_gid)
        except OSError:
            with suppress(OSError):
                os.fchown(fd, -1, was.st_gid)


def _attributes(fd: int, old: int) -> None:
    """Each that can be copied is. What the folder gave the new file, but the old one had not, goes."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        wanted = [name for name in os.listxattr(old) if name not in _UNLIKE]
        for name in {*os.listxattr(fd)} - {*wanted}:
            with suppress(OSError):
                os.removexattr(fd, name)
        for name in wanted:
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(old, name))


def _digest_of(fd: int) -> str:
    import hashlib

    with open(fd, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temp(token: str) -> bytes:
    if len(token) < MIN_TOKEN or set(token) - set("0123456789abcdef"):
        raise ValueError("a token is hexadecimal, of 8 characters or more")
    return f".sidecar-{token}.tmp".encode()
