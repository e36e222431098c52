"""The confinement of paths: everything that a model's tools open or change goes through here, below the
project's folders.

A path is first parsed as text (`Workspace.resolve`), which only gives clear errors; the guarantee is that
opening itself cannot leave the folder (`system/confined_open`). Blocking functions without shared state: call
them from any thread. Knows nothing of policy: it does not decide which files need permission.

All refusals are `denied`, with a `reason` (outside, links, name, kind, own_file, too_large, permission, io,
unsupported; for writing also changed, exists, full, readonly), except for missing files, which are
`not_found`. Their `params` contain the path as requested.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from ..model.failures import Refused
from ..system import own_files
from ..system.confined_open import (
    FOLDER,
    PATH_MAX,
    SUPPORTED,
    FileCheck,
    HeldEntry,
    find_beneath,
    names_on_disk,
    open_beneath,
)
from ..system.kernel_files import kernel_devices

MAX_NAME = 255  # bytes of one name: the limit of common file systems
MAX_ENTRIES = 100_000  # of one folder: more than a model reads, and about 20 MB of memory
_MAX_QUOTED = 300  # characters of a refused path in an error: enough to recognise it, whatever was sent

ReadFilter = Callable[[str], str | None]
"""Returns why a file must not be read, shown or indexed; None when it may be."""

PathKind = Literal["file", "folder", "link", "other"]


class ConfinedPath(msgspec.Struct, frozen=True):
    """Where a path leads, as text: names below one of the workspace's folders, without `..`."""

    root: str
    parts: tuple[str, ...]
    shown: str
    """Relative to the project, or absolute in another folder. `resolve` maps it to the same path again."""


class FolderEntry(msgspec.Struct, frozen=True):
    """One name of a folder. A link is not followed; the size is that of a file, otherwise 0."""

    name: str
    kind: PathKind
    size: int


class _Folder(msgspec.Struct, frozen=True):
    real: str
    device: int
    inode: int
    spellings: tuple[tuple[str, ...], ...]
    """The names from `/` on, as given and as resolved: a model may have seen either."""


class Workspace:
    """The project's folder and further ones. It is bound to the folders that existed when it was created: one
    that is deleted, or replaced at the same path, no longer counts. Creating a new one is cheap.

    `forbidden` returns (device, inode) of files that may never be opened by any name, because closing one
    would drop the locks that our database holds on it. `own_settings` are the user's settings folder and
    file, as absolute paths, whose change always needs permission. `by_hand` avoids openat2, to test the path
    for other systems.
    """

    def __init__(
        self,
        root: str,
        extra: Sequence[str] = (),
        forbidden: Callable[[], set[tuple[int, int]]] | None = None,
        *,
        own_settings: Sequence[str] = (),
        by_hand: bool = False,
    ) -> None:
        if not SUPPORTED:
            raise denied_refusal(root, "unsupported", "File tools are not available on this system yet")
        self._folders = {folder.real: folder for folder in map(_folder, (root, *extra))}
        self._project = next(iter(self._folders.values()))
        self._forbidden = forbidden
        self._by_hand = by_hand
        self.own_settings = tuple(os.path.realpath(path) for path in own_settings)
        self._kernel_devices = kernel_devices()

    @property
    def root(self) -> str:
        """The project's real path."""
        return self._project.real

    @property
    def folders(self) -> tuple[str, ...]:
        """The real paths of the project and of the further folders."""
        return tuple(self._folders)

    def resolve(self, path: str) -> ConfinedPath:
        """Return the path that the text of `path` names. `~`, `\\` and `%2e` are ordinary characters; `..`
        removes the name before it, even if that name is a link. Nothing is looked up."""
        names = [] if path.startswith("/") else list(self._project.spellings[-1])
        for name in _names(path):
            # By text, before any link is followed: `a/../b` is `b` even where `a` is a link. A shell reads it the
            # other way, and then leads out of the project.
            if name == "..":
                del names[-1:]
            else:
                names.append(name)
        for folder in self._folders.values():
            for spelling in folder.spellings:
                if tuple(names[: len(spelling)]) == spelling:
                    return self._place(folder.real, tuple(names[len(spelling) :]))
        raise denied_refusal(path, "outside", "The path leads out of the project")

    def open_file(self, path: str) -> int:
        """Return a descriptor for reading a regular file; the caller closes it."""
        return self._open(self.resolve(path), path, folder=False)

    def open_dir(self, path: str) -> int:
        """Return a descriptor of a folder, for `os.scandir` or a child's working folder; the caller closes
        it.

        Open its entries through the workspace, not by `dir_fd`: that would follow links anywhere.
        """
        return self._open(self.resolve(path), path, folder=True)

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return all bytes of a regular file; refuse one with more than `max_bytes`."""
        with open(self.open_file(path), "rb") as file:
            size = _size(file.fileno())
            try:
                # One more byte detects a file that has grown since, or one that does not report its size.
                data = file.read(max_bytes + 1) if size <= max_bytes else None
            except OSError as error:
                raise open_refusal(path, error) from error
        if data is None or len(data) > max_bytes:
            has = max(size, len(data or b""))
            raise denied_refusal(
                path, "too_large", f"The file has {has} bytes, more than the {max_bytes} that may be read"
            )
        return data

    def list_dir(self, path: str) -> list[FolderEntry]:
        """Return the entries of a folder, sorted by name. Names that are not UTF-8 contain surrogates
        (`os.fsdecode`)."""
        return self._list(self.resolve(path), path)

    def walk(self, path: str = ".") -> Iterator[tuple[ConfinedPath, list[FolderEntry]]]:
        """Walk a folder top down, without following links. Folders that the caller removes from the list are
        not entered; those that cannot be opened, or were removed, are skipped."""
        start = self.resolve(path)
        waiting = [start]
        while waiting:
            place = waiting.pop()
            try:
                entries = self._list(place, path if place is start else place.shown)
            except Refused:
                if place is start:
                    raise
                continue
            yield place, entries
            # Read after the yield: the caller has removed what it does not want.
            folders = [entry.name for entry in reversed(entries) if entry.kind == "folder"]
            waiting.extend(self._place(place.root, (*place.parts, name)) for name in folders)

    def real(self, path: str) -> str:
        """Return the absolute path of an existing regular file, without links, and in its case on disk: one
        text per file, however it was requested (but each hard link has its own)."""
        place = self.resolve(path)
        with self._open_folder(self._folders[place.root], path) as top:
            try:
                spot = find_beneath(top, _encode_parts(place))
                os.close(spot.folder)
                if spot.found is None:
                    raise not_found_refusal(path, "There is no such file or folder")
                self._check(path, spot.found, folder=False)
                names = names_on_disk(top, [*spot.way, spot.name])
            except OSError as error:
                raise open_refusal(path, error) from error
        return os.path.join(place.root, *map(os.fsdecode, names))

    def relative(self, absolute: str) -> str:
        """Return the path for display: relative to the project, or absolute in another folder."""
        return self.resolve(absolute).shown

    @contextmanager
    def hold(self, path: str, *, make: bool = False) -> Iterator[HeldEntry]:
        """Hold open the folder that contains a file to be written, and return its name there: only for
        `writing`.

        A link at the path's end is followed below the folder, like any other. `make` creates missing folders.
        """
        place = self.resolve(path)

        def making(found: os.stat_result) -> None:
            self._check_device(path, found)

        with self._open_folder(self._folders[place.root], path) as top:
            try:
                spot = find_beneath(top, _encode_parts(place), making if make else None)
            except OSError as error:
                raise write_refusal(path, error) from error
        try:
            self._check_device(path, spot.found or os.fstat(spot.folder))
            if own_files.is_own_name(os.fstat(spot.folder), os.fsdecode(spot.name)):
                # SQLite acts on files that it finds beside a database, such as a journal.
                raise denied_refusal(path, "own_file", "The file would belong to the sidecar's own database")
            yield spot
        finally:
            os.close(spot.folder)

    def real_path(self, path: str, spot: HeldEntry) -> str:
        """Return the absolute path of a spot that `path` led to."""
        return os.path.join(self.resolve(path).root, *map(os.fsdecode, (*spot.way, spot.name)))

    def check(self, path: str, *, folder: bool = False) -> FileCheck:
        """Return a check that raises unless it gets a regular file, or a folder, that may be opened."""

        def check(found: os.stat_result) -> None:
            self._check(path, found, folder=folder)

        return check

    def _place(self, root: str, parts: tuple[str, ...]) -> ConfinedPath:
        shown = "/".join(parts) or "."
        return ConfinedPath(root, parts, shown if root == self._project.real else os.path.join(root, *parts))

    def _list(self, place: ConfinedPath, path: str) -> list[FolderEntry]:
        fd = self._open(place, path, folder=True)
        entries: list[FolderEntry] = []
        try:
            with os.scandir(fd) as found:
                for item in found:
                    if len(entries) == MAX_ENTRIES:
                        raise denied_refusal(
                            path, "too_large", f"The folder has more than {MAX_ENTRIES} entries"
                        )
                    entry = _entry(item)
                    if entry:
                        entries.append(entry)
        except OSError as error:
            raise open_refusal(path, error) from error
        finally:
            os.close(fd)
        return sorted(entries, key=lambda entry: entry.name)

    def _open(self, place: ConfinedPath, path: str, *, folder: bool) -> int:
        flags = os.O_RDONLY | (getattr(os, "O_DIRECTORY", 0) if folder else 0)
        with self._open_folder(self._folders[place.root], path) as top:
            try:
                return open_beneath(
                    top, _encode_parts(place), flags, self.check(path, folder=folder), by_hand=self._by_hand
                )
            except OSError as error:
                raise open_refusal(path, error) from error

    @contextmanager
    def _open_folder(self, folder: _Folder, path: str) -> Iterator[int]:
        """Open the folder itself, if it is still the same one."""
        try:
            fd = os.open(folder.real, FOLDER)
        except OSError as error:
            raise open_refusal(path, error) from error
        found = os.fstat(fd)
        try:
            # A project that was moved away and replaced by a link must not lend its permissions to the new one.
            if (found.st_dev, found.st_ino) != (folder.device, folder.inode):
                raise not_found_refusal(path, "The project's folder was replaced by another")
            yield fd
        finally:
            os.close(fd)

    def _check(self, path: str, found: os.stat_result, *, folder: bool) -> None:
        if self._forbidden is not None and (found.st_dev, found.st_ino) in self._forbidden():
            raise denied_refusal(path, "own_file", "The file belongs to the sidecar's own database")
        self._check_device(path, found)
        if folder and not stat.S_ISDIR(found.st_mode):
            raise denied_refusal(path, "kind", "The path is not a folder")
        if not folder and not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, a pipe or a socket"
            raise denied_refusal(path, "kind", f"The path is {kind}, not a file")

    def _check_device(self, path: str, found: os.stat_result) -> None:
        if found.st_dev in self._kernel_devices:
            raise denied_refusal(path, "kind", "The path belongs to the kernel, not to a project")


def write_refusal(path: str, error: OSError) -> Refused:
    """Describe to the user why a file was not written; what was there is unchanged."""
    match error.errno:
        case errno.ENOENT | errno.ESTALE:
            return not_found_refusal(path, "A folder of the path does not exist, or a link in it is broken")
        case errno.ENOTDIR:
            return denied_refusal(path, "kind", "A part of the path is a file, not a folder")
        case errno.EEXIST:
            return denied_refusal(path, "exists", "A file or folder of that name already exists")
        case errno.ENOSPC | errno.EDQUOT:
            return denied_refusal(path, "full", "The disk is full, or the user's quota is used up")
        case errno.EROFS:
            return denied_refusal(path, "readonly", "The file system is read-only")
        case errno.EFBIG:
            return denied_refusal(path, "too_large", "The file would exceed the size limit of the system")
        case errno.EACCES | errno.EPERM:
            return denied_refusal(path, "permission", "The user may not write it")
        case errno.EXDEV | errno.ELOOP | errno.ENAMETOOLONG:
            return open_refusal(path, error)
        case _:
            return denied_refusal(path, "io", f"It cannot be written: {error.strerror}")


def open_refusal(path: str, error: OSError) -> Refused:
    """Describe to the user why something was not opened."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ESTALE:
            return not_found_refusal(path, "There is no such file or folder")
        case errno.EXDEV:
            return denied_refusal(
                path, "outside", "A link in the path leads out of the project, or is absolute"
            )
        case errno.ELOOP:
            return denied_refusal(
                path, "links", "The path has too many links, or one that may not be followed"
            )
        case errno.EACCES | errno.EPERM:
            return denied_refusal(path, "permission", "The user may not read it")
        case errno.ENAMETOOLONG:
            return denied_refusal(path, "name", "The path, or a link in it, is too long")
        case _:
            return denied_refusal(path, "io", f"It cannot be opened: {error.strerror}")


def not_found_refusal(path: str, words: str) -> Refused:
    return Refused("not_found", words, params={"path": _wire_text(path)})


def denied_refusal(path: str, reason: str, words: str) -> Refused:
    return Refused("denied", words, reason=reason, params={"path": _wire_text(path)})


def _folder(path: str) -> _Folder:
    try:
        real = os.path.realpath(path, strict=True)
        found = os.stat(real)
    except (OSError, ValueError) as error:
        raise not_found_refusal(path, "The project folder does not exist") from error
    if not stat.S_ISDIR(found.st_mode):
        raise denied_refusal(path, "kind", "A project is a folder")
    spelled = (os.path.abspath(path), real)
    spellings = tuple(tuple(name for name in text.split("/") if name) for text in spelled)
    return _Folder(real, found.st_dev, found.st_ino, spellings)


def _names(path: str) -> list[str]:
    """Return the names between the slashes, if a file system could store them."""
    try:
        whole = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise denied_refusal(
            path, "name", "The path has characters that are not allowed in file names"
        ) from error
    if b"\0" in whole:
        raise denied_refusal(path, "name", "The path has a NUL character")
    if len(whole) > PATH_MAX or max(map(len, whole.split(b"/"))) > MAX_NAME:
        raise denied_refusal(
            path, "name", f"The path is too long: {PATH_MAX} bytes at most, {MAX_NAME} per name"
        )
    return [name for name in path.split("/") if name not in ("", ".")]


def _size(fd: int) -> int:
    return os.fstat(fd).st_size


def _entry(item: os.DirEntry[str]) -> FolderEntry | None:
    try:
        found = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed since the folder was read
    kinds: dict[int, PathKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    return FolderEntry(item.name, kind, found.st_size if kind == "file" else 0)


def _encode_parts(place: ConfinedPath) -> list[bytes]:
    return [os.fsencode(part) for part in place.parts]


def _wire_text(path: str) -> str:
    """Return well-formed text for the wire, whatever the name is."""
    return path[:_MAX_QUOTED].encode("utf-8", "backslashreplace").decode()
