"""Replaces one file by another, completely or not at all: the only way in which tools change a project.

The new bytes are written beside the file, synced, and renamed in one step; a reader, a crash or a full disk
sees the old bytes or the new ones, never a part. Knows nothing of callers and permissions.

Preserved: permission bits, owner and group if the user may set them, extended attributes and access lists if
the file system supports them. Not preserved: setuid and setgid, which any write clears, and other hard links
to the file, which keep the old bytes. A symbolic link stays: the file at its end is replaced.

A race that no portable call prevents: a program that writes between the last check of the old bytes and the
step that replaces or deletes them, some microseconds later, loses what it wrote. A new file has no such race
if the system can rename only to a free name (`system/confined_open.rename_new`).

Blocking, and without shared state: call it from any thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from ..model.failures import Refused
from ..system.confined_open import O_NOFOLLOW, FileCheck, HeldEntry, open_here, rename_new, sync_folder
from ..system.files import keep_owner, preserved_mode, write_all
from .paths import Workspace, denied_refusal, write_refusal

MIN_TOKEN = 8
"""Characters of a token: enough that no file of the user has the name by chance."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
_KEPT_MODE_BITS = 0o1777
"""The mode bits that a changed file keeps: new bytes must not run with the rights of the old owner."""

_UNCOPIED_ATTRIBUTES = ("security.capability", "security.ima", "security.evm")
"""Attributes that vouch for the old bytes, or give them rights; they do not apply to new ones."""


def replace(
    workspace: Workspace,
    path: str,
    expected: str | None,
    data: bytes | None,
    *,
    mode: int | None = None,
    token: str,
    real: str | None = None,
) -> None:
    """Write `data` in place of the bytes with the digest `expected`; without it, no file may exist yet, and
    missing folders are created. Without `data` the file is deleted; its folders stay. `mode` sets its
    permission bits; otherwise they are those of the old file, or follow the user's umask.

    Refused means that the file is unchanged. `token` (hexadecimal, 8 characters or more) names the temporary
    file beside it, so that `remove_leftovers` finds it if the process dies. `real` is the absolute path that
    was checked: if a link was replaced since and the path leads elsewhere, nothing is written.
    """
    temp = _temporary_name(token)
    with workspace.hold(path, make=expected is None and data is not None) as spot:
        # Compared after the folder is held open, and it is this folder that is written to.
        if real is not None and real != workspace.real_path(path, spot):
            raise denied_refusal(
                path, "changed", "The path leads to another file than the one that was permitted"
            )
        target = _Target(path, spot, expected, workspace.check(path))
        try:
            # Open during the write: its owner, mode and attributes are copied from this very file.
            with target.open_matching() as old:
                if data is not None:
                    _write_and_rename(target, old, data, mode, temp)
                elif spot.linked:
                    raise denied_refusal(
                        path, "links", "The path is a link: delete the file that it leads to"
                    )
                elif old is not None:
                    os.unlink(spot.name, dir_fd=spot.folder)
        except OSError as error:
            raise write_refusal(path, error) from error
        # From here on nothing is refused: the file has changed, whatever else fails.
        sync_folder(spot.folder)


def digest(data: bytes) -> str:
    """The sha256 of the bytes, as `replace` expects it."""
    return hashlib.sha256(data).hexdigest()


def read_current(workspace: Workspace, path: str, max_bytes: int) -> bytes | None:
    """Return the current bytes; None when there is no file."""
    try:
        return workspace.read_bytes(path, max_bytes)
    except Refused as refused:
        if refused.name != "not_found":
            raise
        return None


def remove_leftovers(workspace: Workspace, path: str, token: str) -> None:
    """Remove what a killed `replace` may have left beside `path`. Folders that it created stay. If the path
    no longer leads to a folder, there is nothing to remove."""
    temp = _temporary_name(token)
    with suppress(Refused), workspace.hold(path) as spot:
        with suppress(OSError):
            # Anything but a regular file was not created by us, and a link could be an attack.
            if stat.S_ISREG(os.stat(temp, dir_fd=spot.folder, follow_symlinks=False).st_mode):
                os.unlink(temp, dir_fd=spot.folder)
        sync_folder(spot.folder)


class _Target(msgspec.Struct, frozen=True):
    """The file to replace: where it is, and the digest that it must have."""

    path: str
    spot: HeldEntry
    expected: str | None
    check: FileCheck

    @contextmanager
    def open_matching(self) -> Iterator[int | None]:
        """Open the current file if it has the expected bytes; None if there is none, and none is expected."""
        folder, name = self.spot.folder, self.spot.name
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            if self.expected is not None:
                raise self._changed_on_disk(": it is gone") from None
            yield None
            return
        if stat.S_ISLNK(found.st_mode):
            raise self._changed_on_disk(": it is a link now")
        self.check(found)
        if self.expected is None:
            raise denied_refusal(self.path, "exists", "There is a file of that name already")
        self._ask()
        fd = open_here(folder, name, os.O_RDONLY, self.check)
        try:
            if _digest_of(fd) != self.expected:
                raise self._changed_on_disk()
            yield fd
        finally:
            os.close(fd)

    def _ask(self) -> None:
        """Refuse a file that the user may not write, although the permissions of its folder would allow
        replacing it: it was made read-only on purpose."""
        folder, name = self.spot.folder, self.spot.name
        if os.access not in os.supports_effective_ids:
            return
        if not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
            if os.fstatvfs(folder).f_flag & os.ST_RDONLY:
                raise denied_refusal(self.path, "readonly", "The file system is read-only")
            raise denied_refusal(self.path, "permission", "The user may not write it")

    def _changed_on_disk(self, how: str = "") -> Refused:
        return denied_refusal(self.path, "changed", f"The file changed on disk since it was read{how}")


def _write_and_rename(target: _Target, old: int | None, data: bytes, mode: int | None, temp: bytes) -> None:
    folder, name = target.spot.folder, target.spot.name
    # A new file gets the mode of the umask and the folder's default ACL; any other stays private until it is
    # complete.
    plain = old is None and mode is None
    try:
        fd = os.open(temp, _CREATE, 0o666 if plain else 0o600, dir_fd=folder)
    except FileExistsError as error:
        raise denied_refusal(
            target.path, "exists", f"A leftover is in the way: {os.fsdecode(temp)}"
        ) from error
    try:
        try:
            write_all(fd, data)
            _copy_metadata(fd, old, mode)
            # Before the rename: otherwise a power failure can leave the new name with no bytes.
            os.fsync(fd)
        finally:
            os.close(fd)
        if target.expected is None:
            rename_new(folder, temp, name)
        else:
            # Checked a second time: copying the metadata and syncing take long enough for an editor to save.
            with target.open_matching():
                os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temp, dir_fd=folder)
        raise


def _copy_metadata(fd: int, old: int | None, mode: int | None) -> None:
    """Copy owner first, because a change of owner clears bits; the mode last, because an access list changes
    it."""
    if old is not None:
        was = os.fstat(old)
        keep_owner(fd, was)
        _copy_attributes(fd, old)
        mode = preserved_mode(fd, was, was.st_mode if mode is None else mode)
    if mode is not None and stat.S_IMODE(os.fstat(fd).st_mode) != mode & _KEPT_MODE_BITS:
        os.fchmod(fd, mode & _KEPT_MODE_BITS)


def _copy_attributes(fd: int, old: int) -> None:
    """Copy each attribute that can be copied. Remove those that the folder gave to the new file and the old
    one did not have."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        wanted = [name for name in os.listxattr(old) if name not in _UNCOPIED_ATTRIBUTES]
        # A default access list of the folder would otherwise give more people access than the old file had.
        for name in {*os.listxattr(fd)} - {*wanted}:
            with suppress(OSError):
                os.removexattr(fd, name)
        for name in wanted:
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(old, name))


def _digest_of(fd: int) -> str:
    with open(fd, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temporary_name(token: str) -> bytes:
    if len(token) < MIN_TOKEN or set(token) - set("0123456789abcdef"):
        raise ValueError("a token is hexadecimal, of 8 characters or more")
    return f".sidecar-{token}.tmp".encode()
