"""Which files belong to this process's databases: nothing but the database itself may open or replace them.

POSIX locks belong to the process, not to a descriptor: closing any descriptor of a database file drops the locks that
SQLite holds on it. So the list is one for the whole process, and everything that opens a file by a name from outside
compares device and inode with it, which covers links of every kind. Imports nothing but the standard library, since
the settings are read before anything else is loaded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Inode = tuple[int, int]
"""Device and inode: the identity of a file, whatever its name."""

_O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.scandir in os.supports_fd


class FolderGuard:
    """A folder whose files that begin with `prefix` are the process's own, until `release`.

    The folder is held open, so that its files are known after a rename too.
    """

    def __init__(self, folder: str, prefix: str) -> None:
        self._path = os.path.abspath(folder)
        self._prefix = prefix
        self._folder = os.open(self._path, _O_PATH) if _BY_DESCRIPTOR else None
        _guards.append(self)

    def release(self) -> None:
        if self in _guards:
            _guards.remove(self)
            if self._folder is not None:
                os.close(self._folder)

    def folder(self) -> os.stat_result:
        return os.stat(self._path) if self._folder is None else os.fstat(self._folder)

    def claims(self, folder: os.stat_result, name: str) -> bool:
        """Return whether a file of this name in a folder would be part of the database, also when it does not exist
        yet.
        """
        # In any case: on a file system that ignores case, `Sidecar.DB` is the database.
        return name.casefold().startswith(self._prefix.casefold()) and os.path.samestat(folder, self.folder())

    def files(self) -> Iterator[Inode]:
        """Return the existing files of the database: log, index, locks, reserve, backups and damaged copies."""
        if self._folder is None:
            yield from self._list_own_inodes(self._path)
            return
        # A separate descriptor for each listing: two threads on one would share its position.
        here = os.open(".", os.O_RDONLY, dir_fd=self._folder)
        try:
            yield from self._list_own_inodes(here)
        finally:
            os.close(here)

    def _list_own_inodes(self, folder: str | int) -> Iterator[Inode]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(self._prefix):
                    try:
                        # Not `entry.stat`, which on Windows lacks the device and the inode.
                        found = (
                            os.stat(entry.path)
                            if isinstance(folder, str)
                            else os.stat(entry.name, dir_fd=folder)
                        )
                    except FileNotFoundError:
                        continue  # SQLite creates and removes its files at any time
                    yield found.st_dev, found.st_ino


_guards: list[FolderGuard] = []


def own_inodes() -> set[Inode]:
    """Return the files of all guarded folders. An OSError means that they are unknown: then nothing may be opened."""
    return {inode for guard in tuple(_guards) for inode in guard.files()}


def is_own(found: os.stat_result) -> bool:
    return (found.st_dev, found.st_ino) in own_inodes()


def is_own_name(folder: os.stat_result, name: str) -> bool:
    """Return whether SQLite, or we, would take a file of this name in a folder for a part of a database of ours."""
    return any(guard.claims(folder, name) for guard in tuple(_guards))


def enclosing_folder(path: str, folders: Iterable[str]) -> str | None:
    """Return which of these folders `path` is or lies in, through links and mounts too. Neither needs to exist."""
    real = os.path.realpath(path)
    above = [real]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    inodes = {inode for each in above if (inode := _inode(each))}
    return next((each for each in folders if os.path.realpath(each) in above or _inode(each) in inodes), None)


def _inode(path: str) -> Inode | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_own_folder(found: os.stat_result) -> bool:
    return any(os.path.samestat(found, guard.folder()) for guard in tuple(_guards))
