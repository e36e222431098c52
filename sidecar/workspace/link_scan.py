"""Finds the links of a project, so that a path can be checked by the names that lead to it.

Listings of folders are cached for the whole process: a scan of a known project only reads the times of its folders,
and lists those that have changed. Blocking; follows no link.
"""

from __future__ import annotations

import os
import threading
import time

import msgspec

from ..system.git_folders import is_git_folder
from ..system.kernel_files import kernel_devices

MAX_SCANNED = 500_000
"""Entries of a project: about a second at the first scan, 50 ms later. Beyond that the result is incomplete."""

MAX_PROJECTS = 8
"""Projects and further folders whose listings are cached: some 10 MB for the largest."""

SETTLED_NS = 2_000_000_000
"""How old a change must be for a listing to be cached: two changes within one tick of a file system's clock (2 s for
the coarsest) have the same time.
"""

_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", "target"))
"""Folders with many files that are not scanned for links. The hooks of git are found as `repositories`."""

Stamp = tuple[int, int, int, int]


class LinkScan(msgspec.Struct, frozen=True):
    """Absolute paths. `repositories` are what is named `.git`, and folders that are a repository by their content.
    Without `complete` the project has more entries than were scanned.
    """

    links: list[str]
    repositories: list[str]
    complete: bool


class _Listing(msgspec.Struct, frozen=True):
    stamp: Stamp
    settled: bool
    entries: int
    folders: list[str]
    links: list[str]
    repositories: list[str]


_known: dict[str, dict[str, _Listing]] = {}
_lock = threading.Lock()


def scan(root: str) -> LinkScan:
    """Return the links in a folder and its subfolders, those near its top first."""
    before = _cached_listings(root)
    listed: dict[str, _Listing] = {}
    links: list[str] = []
    repositories: list[str] = []
    kernel = kernel_devices()
    waiting, looked = [root], 0
    for folder in waiting:  # grows during the loop
        if looked >= MAX_SCANNED:
            break
        try:
            listing = _list(folder, before.get(folder))
        except OSError:
            continue  # a folder that the user may not read, or that was removed
        if listing.stamp[0] in kernel:
            continue
        listed[folder] = listing
        looked += listing.entries
        links += listing.links
        repositories += listing.repositories
        waiting += listing.folders
    _store(root, listed)
    return LinkScan(links, repositories, looked < MAX_SCANNED)


def _cached_listings(root: str) -> dict[str, _Listing]:
    with _lock:
        return _known.get(root, {})


def _store(root: str, listed: dict[str, _Listing]) -> None:
    with _lock:
        _known.pop(root, None)
        _known[root] = listed
        while len(_known) > MAX_PROJECTS:
            del _known[next(iter(_known))]


def _list(folder: str, known: _Listing | None) -> _Listing:
    # The time is taken before the folder is read: a change while it is read makes the listing unsettled.
    now, found = time.time_ns(), os.lstat(folder)
    stamp = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    # Both times: a program can set the modification time back, but not the change time.
    if known is not None and known.settled and known.stamp == stamp:
        return known
    folders, links, repositories = [], [], []
    names: set[str] = set()
    with os.scandir(folder) as listing:
        for entry in listing:
            names.add(entry.name)
            if entry.name == ".git":
                repositories.append(entry.path)
            if entry.is_symlink():
                links.append(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                folders.append(entry.path)
    if is_git_folder(names):
        repositories.append(folder)
    settled = now - max(stamp[2:]) > SETTLED_NS
    return _Listing(stamp, settled, len(names), folders, links, repositories)
