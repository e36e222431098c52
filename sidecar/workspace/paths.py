"""The one confinement: everything that a model's tools open or change is found here, beneath the project's folders.

A path is first read as text (`Workspace.resolve`), which is for clear words alone; what holds is that the
opening itself cannot leave the folder (`system/beneath`). Plain blocking functions without shared state: call
them from any thread. Knows nothing of policy: which files inside need a question is not decided here.

All refusals are `denied`, with a `reason` (outside, links, name, kind, own_file, too_large, permission, io,
unsupported; of writing also changed, exists, full, readonly), but for what is not there, which is `not_found`.
Their `params` hold the path as it was asked.
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
from ..system.beneath import FOLDER, PATH_MAX, SUPPORTED, Check, Spot, as_listed, find_beneath, open_beneath

MAX_NAME = 255  # bytes of one name: what the usual file systems keep
MAX_ENTRIES = 100_000  # of one folder: a list that no model reads to its end, and memory of some 20 MB
_QUOTED = 300  # characters of a refused path in an error: enough to recognise it, whatever was sent
_KERNEL_TYPES = frozenset(
    b"proc sysfs cgroup cgroup2 debugfs tracefs securityfs selinuxfs smackfs configfs efivarfs pstore bpf fusectl"
    b" binfmt_misc rpc_pipefs nfsd resctrl".split()
)

Kind = Literal["file", "folder", "link", "other"]


class Place(msgspec.Struct, frozen=True):
    """Where a path leads, as text: names beneath one of the workspace's folders, without `..`."""

    root: str
    parts: tuple[str, ...]
    shown: str
    """Relative to the project, or absolute in another folder. `resolve` takes it back to the same place."""


class Entry(msgspec.Struct, frozen=True):
    """One name of a folder. A link is not followed; the size is that of a file, else 0."""

    name: str
    kind: Kind
    size: int


class _Folder(msgspec.Struct, frozen=True):
    real: str
    device: int
    inode: int
    spellings: tuple[tuple[str, ...], ...]
    """The names from `/` on, as it was given and as it really is: a model may have seen either."""


class Workspace:
    """The project's folder and further ones. It is bound to the folders that were there when it was made: one
    that is deleted, or exchanged for another at the same path, is not there any more. A new one is cheap.

    `forbidden` gives (device, inode) of files that may never be opened by any name, as closing one would drop
    the locks that our database holds on it. `by_hand` does without openat2, to test what other systems do.
    """

    def __init__(
        self,
        root: str,
        extra: Sequence[str] = (),
        forbidden: Callable[[], set[tuple[int, int]]] | None = None,
        *,
        by_hand: bool = False,
    ) -> None:
        if not SUPPORTED:
            raise denied(root, "unsupported", "File tools are not available on this system yet")
        self._folders = {folder.real: folder for folder in map(_folder, (root, *extra))}
        self._project = next(iter(self._folders.values()))
        self._forbidden = forbidden
        self._by_hand = by_hand
        self._kernel_devices = _kernel_devices()

    @property
    def root(self) -> str:
        """The project's real path."""
        return self._project.real

    def resolve(self, path: str) -> Place:
        """The place that the text of `path` names. `~`, `\\` and `%2e` are ordinary characters; `..` takes
        the name before it away, also where that name is a link. Nothing is looked up."""
        names = [] if path.startswith("/") else list(self._project.spellings[-1])
        for name in _names(path):
            if name == "..":
                del names[-1:]
            else:
                names.append(name)
        for folder in self._folders.values():
            for spelling in folder.spellings:
                if tuple(names[: len(spelling)]) == spelling:
                    return self._place(folder.real, tuple(names[len(spelling) :]))
        raise denied(path, "outside", "The path leads out of the project")

    def open_file(self, path: str) -> int:
        """A descriptor to read a regular file from; the caller closes it."""
        return self._open(self.resolve(path), path, folder=False)

    def open_dir(self, path: str) -> int:
        """A descriptor of a folder, for `os.scandir` or a child's working folder; the caller closes it.

        Open what is in it through the workspace, not by `dir_fd`: that would follow links anywhere.
        """
        return self._open(self.resolve(path), path, folder=True)

    def read_bytes(self, path: str, max_bytes: int) -> bytes:
        """All bytes of a regular file, which is refused when it has more than `max_bytes`."""
        with open(self.open_file(path), "rb") as file:
            size = _size(file.fileno())
            try:
                # One byte more tells a file that has grown since, or one that does not say how large it is.
                data = file.read(max_bytes + 1) if size <= max_bytes else None
            except OSError as error:
                raise refusal(path, error) from error
        if data is None or len(data) > max_bytes:
            has = max(size, len(data or b""))
            raise denied(
                path, "too_large", f"The file has {has} bytes, more than the {max_bytes} that may be read"
            )
        return data

    def list_dir(self, path: str) -> list[Entry]:
        """What is in a folder, sorted by name. Names that are not UTF-8 carry surrogates (`os.fsdecode`)."""
        return self._list(self.resolve(path), path)

    def walk(self, path: str = ".") -> Iterator[tuple[Place, list[Entry]]]:
        """A folder and all beneath it, top down, without following links. Folders that the caller removes
        from the list are not entered; those that cannot be opened, or are gone, are left out."""
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
            folders = [entry.name for entry in reversed(entries) if entry.kind == "folder"]
            waiting.extend(self._place(place.root, (*place.parts, name)) for name in folders)

    def real(self, path: str) -> str:
        """The absolute path of a regular file that is there, without links, and in the case that it has on disk:
        one text for one file, however it was asked for (but each hard link has its own)."""
        place = self.resolve(path)
        with self._opened(self._folders[place.root], path) as top:
            try:
                spot = find_beneath(top, _encoded(place))
                os.close(spot.folder)
                if spot.found is None:
                    raise not_found(path, "There is no such file or folder")
                self._check(path, spot.found, folder=False)
                names = as_listed(top, [*spot.way, spot.name])
            except OSError as error:
                raise refusal(path, error) from error
        return os.path.join(place.root, *map(os.fsdecode, names))

    def relative(self, absolute: str) -> str:
        """The path as it is shown: relative to the project, or absolute in another folder."""
        return self.resolve(absolute).shown

    @contextmanager
    def hold(self, path: str, *, make: bool = False) -> Iterator[Spot]:
        """The folder that a file to be written lies in, held open, and its name there: for `writing` alone.

        A link at the path's end is followed beneath the folder, like any other. `make` makes missing folders.
        """
        place = self.resolve(path)

        def making(found: os.stat_result) -> None:
            self._check_device(path, found)

        with self._opened(self._folders[place.root], path) as top:
            try:
                spot = find_beneath(top, _encoded(place), making if make else None)
            except OSError as error:
                raise unwritten(path, error) from error
        try:
            self._check_device(path, spot.found or os.fstat(spot.folder))
            yield spot
        finally:
            os.close(spot.folder)

    def check(self, path: str, *, folder: bool = False) -> Check:
        """What raises unless it is given a regular file, or a folder, that may be opened."""

        def check(found: os.stat_result) -> None:
            self._check(path, found, folder=folder)

        return check

    def _place(self, root: str, parts: tuple[str, ...]) -> Place:
        shown = "/".join(parts) or "."
        return Place(root, parts, shown if root == self._project.real else os.path.join(root, *parts))

    def _list(self, place: Place, path: str) -> list[Entry]:
        fd = self._open(place, path, folder=True)
        entries: list[Entry] = []
        try:
            with os.scandir(fd) as found:
                for item in found:
                    if len(entries) == MAX_ENTRIES:
                        raise denied(path, "too_large", f"The folder has more than {MAX_ENTRIES} entries")
                    entry = _entry(item)
                    if entry:
                        entries.append(entry)
        except OSError as error:
            raise refusal(path, error) from error
        finally:
            os.close(fd)
        return sorted(entries, key=lambda entry: entry.name)

    def _open(self, place: Place, path: str, *, folder: bool) -> int:
        flags = os.O_RDONLY | (getattr(os, "O_DIRECTORY", 0) if folder else 0)
        with self._opened(self._folders[place.root], path) as top:
            try:
                return open_beneath(
                    top, _encoded(place), flags, self.check(path, folder=folder), by_hand=self._by_hand
                )
            except OSError as error:
                raise refusal(path, error) from error

    @contextmanager
    def _opened(self, folder: _Folder, path: str) -> Iterator[int]:
        """The folder itself, if it is still the one that was meant."""
        try:
            fd = os.open(folder.real, FOLDER)
        except OSError as error:
            raise refusal(path, error) from error
        found = os.fstat(fd)
        try:
            if (found.st_dev, found.st_ino) != (folder.device, folder.inode):
                raise not_found(path, "The project's folder was exchanged for another")
            yield fd
        finally:
            os.close(fd)

    def _check(self, path: str, found: os.stat_result, *, folder: bool) -> None:
        if self._forbidden is not None and (found.st_dev, found.st_ino) in self._forbidden():
            raise denied(path, "own_file", "The file belongs to the sidecar's own database")
        self._check_device(path, found)
        if folder and not stat.S_ISDIR(found.st_mode):
            raise denied(path, "kind", "The path is not a folder")
        if not folder and not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, a pipe or a socket"
            raise denied(path, "kind", f"The path is {kind}, not a file")

    def _check_device(self, path: str, found: os.stat_result) -> None:
        if found.st_dev in self._kernel_devices:
            raise denied(path, "kind", "The path belongs to the kernel, not to a project")


def unwritten(path: str, error: OSError) -> Refused:
    """Why a file was not written, in words for its user; what was there is as it was."""
    match error.errno:
        case errno.ENOENT | errno.ESTALE:
            return not_found(path, "A folder of the path is not there, or a link in it leads to nothing")
        case errno.ENOTDIR:
            return denied(path, "kind", "A part of the path is a file, not a folder")
        case errno.EEXIST:
            return denied(path, "exists", "There is something of that name already")
        case errno.ENOSPC | errno.EDQUOT:
            return denied(path, "full", "The disk, or the user's share of it, is full")
        case errno.EROFS:
            return denied(path, "readonly", "The file system is read-only")
        case errno.EFBIG:
            return denied(path, "too_large", "The file would be larger than the system lets it be")
        case errno.EACCES | errno.EPERM:
            return denied(path, "permission", "The user may not write it")
        case errno.EXDEV | errno.ELOOP | errno.ENAMETOOLONG:
            return refusal(path, error)
        case _:
            return denied(path, "io", f"It cannot be written: {error.strerror}")


def refusal(path: str, error: OSError) -> Refused:
    """Why something was not opened, in words for its user."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ESTALE:
            return not_found(path, "There is no such file or folder")
        case errno.EXDEV:
            return denied(path, "outside", "A link in the path leads out of the project, or is absolute")
        case errno.ELOOP:
            return denied(path, "links", "The path has too many links, or one that may not be followed")
        case errno.EACCES | errno.EPERM:
            return denied(path, "permission", "The user may not read it")
        case errno.ENAMETOOLONG:
            return denied(path, "name", "The path, or a link in it, is too long")
        case _:
            return denied(path, "io", f"It cannot be opened: {error.strerror}")


def not_found(path: str, words: str) -> Refused:
    return Refused("not_found", words, params={"path": _quoted(path)})


def denied(path: str, reason: str, words: str) -> Refused:
    return Refused("denied", words, reason=reason, params={"path": _quoted(path)})


def _folder(path: str) -> _Folder:
    try:
        real = os.path.realpath(path, strict=True)
        found = os.stat(real)
    except (OSError, ValueError) as error:
        raise not_found(path, "There is no such project folder") from error
    if not stat.S_ISDIR(found.st_mode):
        raise denied(path, "kind", "A project is a folder")
    spelled = (os.path.abspath(path), real)
    spellings = tuple(tuple(name for name in text.split("/") if name) for text in spelled)
    return _Folder(real, found.st_dev, found.st_ino, spellings)


def _names(path: str) -> list[str]:
    """The names between the slashes, if a file system could hold them."""
    try:
        whole = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise denied(path, "name", "The path has characters that no file name can have") from error
    if b"\0" in whole:
        raise denied(path, "name", "The path has a NUL character")
    if len(whole) > PATH_MAX or max(map(len, whole.split(b"/"))) > MAX_NAME:
        raise denied(path, "name", f"The path is too long: {PATH_MAX} bytes at most, {MAX_NAME} a name")
    return [name for name in path.split("/") if name not in ("", ".")]


def _size(fd: int) -> int:
    return os.fstat(fd).st_size


def _entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        found = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # gone since the folder was read
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    return Entry(item.name, kind, found.st_size if kind == "file" else 0)


def _encoded(place: Place) -> list[bytes]:
    return [os.fsencode(part) for part in place.parts]


def _kernel_devices() -> frozenset[int]:
    """The devices of /proc, /sys and their like, and of all that is mounted beneath these two: their files show
    other processes' secrets, and reading one, or making a folder there, can do things."""
    found = {os.stat(path).st_dev for path in ("/proc", "/sys") if os.path.isdir(path)}
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                # `36 35 98:0 /root /where options - type source options`; the optional ones vary in number.
                fields, _, kind = line.partition(b" - ")
                _, _, device, _, where, *_ = fields.split(b" ")
                if where.startswith((b"/proc/", b"/sys/")) or kind.split(b" ", 1)[0] in _KERNEL_TYPES:
                    major, minor = device.split(b":")
                    found.add(os.makedev(int(major), int(minor)))
    except OSError:
        pass  # another system than Linux, or a /proc that is not mounted
    # A container hides single files of /proc behind those of ordinary file systems, which stay ordinary.
    return frozenset(found - {os.stat(path).st_dev for path in ("/", "/dev") if os.path.isdir(path)})


def _quoted(path: str) -> str:
    """Well-formed text for the wire, whatever the name is."""
    return path[:_QUOTED].encode("utf-8", "backslashreplace").decode()
