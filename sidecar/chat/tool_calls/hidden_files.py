"""Finds the files that a read rule withholds from commands that nobody was asked about, so that the sandbox hides them.

What a command opens cannot be told from its words. So the rule is not applied to the words alone: the files
themselves are found, by all their names. Hides nothing itself: `system/sandbox` does. Blocking.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

import msgspec

from ...policy import matching
from ...policy.rules import EVERYTHING, Rule
from ...policy.withheld_files import path_stops
from ...system.folders import holds
from ...system.homes import is_system
from ...text.folding import fold_case
from ...workspace.names import RealNames
from ...workspace.paths import Workspace

MAX_HIDDEN = 300
"""Files that are hidden one by one: each is a mount. A whole folder is not, since git would take its files for
deleted, and commit that.
"""

MAX_SCANNED = 100_000
"""Entries of the project and its further folders: some 120 ms."""

MAX_FOLLOWED = 50
"""Links to folders whose files are also checked by the names that they have there."""

_DEPENDENCIES = frozenset(("node_modules", ".venv", "venv", "__pycache__", "target"))
"""Folders that are scanned only if a rule names them: they are large, and hold nothing of the user's own."""

_WILD = ("*", "?")


class HiddenFiles(msgspec.Struct, frozen=True):
    """Real paths. `problem` says why these are not all files that the rules withhold, or cannot be hidden."""

    paths: tuple[str, ...] = ()
    problem: str | None = None


def find_hidden(rules: Sequence[Rule], workspace: Workspace) -> HiddenFiles:
    """Return the files that rules deny or ask for reading."""
    stopping = [rule for rule in rules if rule.kind == "read" and rule.effect != "allow"]
    if not stopping:
        return HiddenFiles()
    if any(rule.pattern in EVERYTHING for rule in stopping):
        return HiddenFiles(problem="a rule withholds every file")
    search = _Search([_Test(rule) for rule in stopping], workspace)
    return search.run()


class _Test:
    """One rule, with what can be seen cheaply of a path that it cannot match."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._pattern = rule.pattern if rule.exact is None else rule.exact
        self.parts = [fold_case(part) for part in matching.path_parts(self._pattern.rstrip("/") or "/")]
        if rule.exact is not None:
            self.parts = [fold_case(part) for part in self._pattern.split("/") if part not in ("", ".")]
        self.is_absolute = self._pattern.startswith("/")
        fixed = [part for part in self.parts if part != "**"]
        last = fixed[-1] if fixed else "*"
        self._suffix = last.lstrip("*")
        self._is_whole = self._suffix == last
        if any(sign in self._suffix for sign in _WILD):
            self._suffix, self._is_whole = "", False
        first = self.parts[0] if self.parts else "**"
        self._first = None if self.is_absolute or any(sign in first for sign in _WILD) else first

    def stops(self, shown: str, real: str, name: str, top: str) -> bool:
        """Return whether the rule withholds the file or folder; of what is in a folder, its name alone is checked.
        `name` and `top` are the last and the first part of `shown`, folded.
        """
        if name != self._suffix if self._is_whole else not name.endswith(self._suffix):
            return False
        if self._first is not None and self._first != top:
            return False
        return path_stops(self._rule, real if self.is_absolute else shown)

    def lies_beneath(self, shown: str) -> bool:
        """Return whether the rule may withhold something in the folder of this name."""
        return matching.lies_above(self._pattern, shown)

    def outside(self, folders: Sequence[str]) -> str | None:
        """Return the file or folder outside of these that an absolute rule names without a wildcard."""
        path = self._pattern.removesuffix("/**").rstrip("/")
        if not self.is_absolute or any(sign in path for sign in _WILD) or not os.path.exists(path):
            return None
        real = os.path.realpath(path)
        overlaps = any(holds(folder, real) or holds(real, folder) for folder in folders)
        return None if overlaps or is_system(real) else real


class _Folder(msgspec.Struct, frozen=True):
    """A folder that waits to be scanned. `withheld` says that a rule withholds all in it, `follows` that links to
    folders are followed.
    """

    path: str
    shown: str
    withheld: bool
    follows: bool


class _Search:
    def __init__(self, tests: Sequence[_Test], workspace: Workspace) -> None:
        self._tests = tests
        self._workspace = workspace
        self._named = {part for test in tests for part in test.parts}
        self._found: dict[str, None] = {}
        self._left = MAX_SCANNED
        self._followed = 0

    def run(self) -> HiddenFiles:
        folders = self._workspace.folders
        for test in self._tests:
            if path := test.outside(folders):
                self._found[path] = None
        waiting = [
            _Folder(path, "" if path == self._workspace.root else path, False, True) for path in folders
        ]
        for folder in waiting:  # grows during the loop
            waiting += self._scan(folder)
            if self._left < 0:
                return HiddenFiles(problem=f"the project has over {MAX_SCANNED:,} entries")
            if self._followed > MAX_FOLLOWED:
                return HiddenFiles(problem=f"the project has over {MAX_FOLLOWED} links to folders")
        names = RealNames(self._workspace)
        for path in list(self._found):
            if problem := self._add_hard_links(path, names):
                return HiddenFiles(problem=problem)
        if len(self._found) > MAX_HIDDEN:
            return HiddenFiles(problem=f"rules withhold {len(self._found)} files, too many to hide")
        return HiddenFiles(tuple(self._found))

    def _scan(self, folder: _Folder) -> Iterator[_Folder]:
        try:
            entries = list(os.scandir(folder.path))
        except OSError:
            return  # a folder that the user may not read, or that was removed
        self._left -= len(entries)
        top = fold_case(folder.shown.partition("/")[0])
        for entry in entries if self._left >= 0 else ():
            if entry.name == ".git":
                continue
            shown = f"{folder.shown}/{entry.name}" if folder.shown else entry.name
            name = fold_case(entry.name)
            withheld = folder.withheld or any(
                test.stops(shown, entry.path, name, top or name) for test in self._tests
            )
            below = _Folder(entry.path, shown, withheld, folder.follows)
            if entry.is_symlink():
                yield from self._follow(below)
            elif entry.is_dir(follow_symlinks=False):
                if withheld or entry.name not in _DEPENDENCIES or name in self._named:
                    yield below
            elif withheld:
                self._add(entry.path)

    def _follow(self, link: _Folder) -> Iterator[_Folder]:
        """Check the target of a link by the link's name: what a rule withholds there, it withholds here too."""
        real = os.path.realpath(link.path)
        if not os.path.isdir(real):
            if link.withheld:
                self._add(real)
            return
        inside = any(holds(path, real) for path in self._workspace.folders)
        wanted = link.withheld or any(test.lies_beneath(link.shown) for test in self._tests)
        if link.follows and (wanted or inside):
            self._followed += 1
            yield _Folder(real, link.shown, link.withheld, False)

    def _add(self, path: str) -> None:
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                self._found[path] = None
        except OSError:
            return  # removed since it was listed

    def _add_hard_links(self, path: str, names: RealNames) -> str | None:
        """Add the other names of the same bytes; return why they may not all be known."""
        if not os.path.isfile(path) or os.lstat(path).st_nlink < 2:
            return None
        shown = self._workspace.relative(path) if self._is_inside(path) else path
        for name in names(shown):
            self._add(os.path.join(self._workspace.root, name))
        return names.unchecked(shown)

    def _is_inside(self, path: str) -> bool:
        return any(holds(folder, path) for folder in self._workspace.folders)
