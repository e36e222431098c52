"""Finds all names of a project's file: its spelling, link targets, hard links to the same bytes, and links to
it.

A rule or a protected name must apply whichever name is used, so a policy check covers all of these. This only
looks up names: `paths` still confines what is opened. Blocking; one object serves one call and caches.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ..model.failures import Refused
from ..system.folders import holds
from ..system.lazy import lazy_module
from .paths import Workspace, denied_refusal

if TYPE_CHECKING:
    from ..system import git_folders, own_code
    from . import link_scan
else:
    git_folders = lazy_module("sidecar.system.git_folders")
    own_code = lazy_module("sidecar.system.own_code")
    link_scan = lazy_module("sidecar.workspace.link_scan")

MAX_FILES_WALKED = 50_000
"""Entries of the project that are checked for other names of a hard-linked file: less than a second."""

MAX_EXPANDED = 500
MAX_STARRED = 3
"""Files that one shell pattern expands to, and names in it that are patterns: more would walk the whole
project."""

OWN_SETTINGS = ".sidecar"
"""The name under which the user's own settings and our own code are checked: they can run programs like the
settings of a project."""

MAX_REPOSITORIES = 100
"""Repositories in a project whose configuration is read."""

TRIES = 32
"""How often links are followed that another process replaces meanwhile."""


class RealNames:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, str] = {}
        self._linked: dict[tuple[int, int], list[str]] | None = None
        self._links: list[tuple[str, str]] | None = None
        self._unscanned: str | None = None
        self._all_walked = True
        self._outside: tuple[str, ...] = ()

    def note_outside(self, paths: Iterable[str]) -> None:
        """Note the files and folders that run outside of the sandbox."""
        self._outside = tuple(map(os.path.realpath, paths))

    def __call__(self, path: str) -> tuple[str, ...]:
        """Return the other names of the file or folder, as the workspace displays paths."""
        # Looked up once per call: all decisions about it must see the same names, even if a link changes
        # meanwhile.
        if path not in self._known:
            self._known[path] = self._look_up(path)
        return self._known[path]

    def aliases(self, path: str) -> tuple[str, ...]:
        """Return further names that a rule may match: those through links of the project that lead to it or
        to a folder that contains it, such as `.vscode/x` for `editor/x` where `.vscode` is a link; and
        `.sidecar/x` for the user's own settings and for our own code."""
        real = None if "\0" in path else self.absolute(path)
        if real is None:
            return ()
        ours = (*self._workspace.own_settings, *own_code.own_code_in(self._workspace.folders))
        settings = [OWN_SETTINGS + real[len(own) :] for own in ours if holds(own, real)]
        leading = (each for each in self._scan_links() if holds(each[1], real))
        names = (self._shown_path(link + real[len(target) :]) for link, target in leading)
        return tuple(dict.fromkeys((*settings, *names)))

    def unchecked(self, path: str) -> str | None:
        """Return why the path may have further names that were not found: the project is too large."""
        real = None if "\0" in path else self.absolute(path)
        if real is None:
            return None
        self._scan_links()
        if self._unscanned:
            return self._unscanned
        names = self._hard_linked(real)
        if not self._all_walked and len(names) < os.lstat(real).st_nlink:
            return f"it has other names, and the project has over {MAX_FILES_WALKED:,} entries"
        return None

    def runs_outside(self, path: str) -> bool:
        """Return whether a change of the file may make something run outside of the sandbox: the script of a
        hook or a server, or a program that PATH finds."""
        if not self._outside or "\0" in path:
            return False
        names = filter(None, map(self.absolute, (path, *self(path))))
        return any(holds(each, name) for name in names for each in self._outside)

    def absolute(self, path: str) -> str | None:
        """Return the absolute path without links, even of a missing file; None outside of the project."""
        try:
            place = self._workspace.resolve(path)
        except Refused:
            return None
        if not place.parts:
            return place.root
        folder = self._real_folder(os.path.join(place.root, *place.parts[:-1]))
        whole = os.path.join(folder, place.parts[-1])
        return _real(whole) if os.path.islink(whole) else whole

    def expand(self, pattern: str) -> tuple[str, ...]:
        """Return the files of the project that a shell expands a word with `*`, `?` or `[` to, with all their
        names."""
        parts = pattern.split("/")
        starred = sum(any(sign in part for sign in "*?[") for part in parts)
        if not 0 < starred <= MAX_STARRED or "\0" in pattern:
            return ()
        found = islice(glob.iglob(pattern, root_dir=self._workspace.root), MAX_EXPANDED)
        return tuple(name for path in found for name in (path, *self(path)))

    def _look_up(self, path: str) -> tuple[str, ...]:
        real = None if "\0" in path else self.absolute(path)
        if real is None:
            return ()
        names = dict.fromkeys(map(self._shown_path, (real, *self._hard_linked(real))))
        names.pop(path, None)
        return tuple(names)

    def _shown_path(self, real: str) -> str:
        try:
            return self._workspace.relative(real)
        except Refused:
            return real

    def _real_folder(self, folder: str) -> str:
        if folder not in self._folders:
            self._folders[folder] = _real(folder)
        return self._folders[folder]

    def _hard_linked(self, real: str) -> list[str]:
        """Return the other names of a file that has several. Only then is the project walked, once."""
        try:
            found = os.lstat(real)
        except (OSError, ValueError):
            return []
        # A folder has a link for each subfolder; only files have several names.
        if found.st_nlink < 2 or not stat.S_ISREG(found.st_mode):
            return []
        if self._linked is None:
            self._linked = self._find_linked()
        return self._linked.get((found.st_dev, found.st_ino), [])

    def _scan_links(self) -> list[tuple[str, str]]:
        """Return the links of the project and of its further folders with their targets. A repository leads
        to its folders, hooks and settings like a link."""
        if self._links is None:
            scans = [link_scan.scan(folder) for folder in self._workspace.folders]
            gits = dict.fromkeys(path for found in scans for path in found.repositories)
            gits |= dict.fromkeys(filter(None, map(git_folders.enclosing, self._workspace.folders)))
            self._links = [(link, _real(link)) for found in scans for link in found.links]
            self._links += [link for git in islice(gits, MAX_REPOSITORIES) for link in _repository_links(git)]
            if not all(found.complete for found in scans):
                self._unscanned = (
                    f"links to it may exist: the project has over {link_scan.MAX_SCANNED:,} entries"
                )
            elif len(gits) > MAX_REPOSITORIES:
                self._unscanned = f"git may run it: the project has over {MAX_REPOSITORIES} repositories"
        return self._links

    def _find_linked(self) -> dict[tuple[int, int], list[str]]:
        linked: dict[tuple[int, int], list[str]] = {}
        waiting, looked = list(self._workspace.folders), 0
        while waiting and looked < MAX_FILES_WALKED:
            try:
                with os.scandir(waiting.pop(0)) as entries:
                    for entry in entries:
                        looked += 1
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                            continue
                        found = entry.stat(follow_symlinks=False)
                        if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                            linked.setdefault((found.st_dev, found.st_ino), []).append(entry.path)
            except OSError:
                continue  # a folder that the user may not read, or that was removed
        self._all_walked = looked < MAX_FILES_WALKED
        return linked


def _repository_links(git: str) -> Iterator[tuple[str, str]]:
    """Return the folders and files that a repository leads to, each with a name within a `.git`."""
    inside = git if os.path.basename(git) == ".git" else os.path.join(git, ".git")
    folders = git_folders.git_folders(git)
    yield from ((inside, folder) for folder in folders if folder != inside)
    for path, target in git_folders.links(git):
        folder = next(folder for folder in folders if holds(folder, path))
        yield inside + path[len(folder) :], target


def _real(path: str) -> str:
    for _ in range(TRIES):
        try:
            return os.path.realpath(path)
        except OSError:
            continue  # a link was replaced between two lookups
    raise denied_refusal(path, "changed", "The links in the path change while they are followed")
