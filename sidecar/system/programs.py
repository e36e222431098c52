"""Where programs are installed, and which of them a command in the sandbox could have put there.

PATH may name folders of a project: an activated virtual environment, `node_modules/.bin`. A command may write there,
and a program that it leaves must not be started outside of the sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from .folders import holds
from .lazy import lazy_module

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")  # brings three compression modules with it

_SYSTEM = ("/usr/bin", "/bin", "/usr/local/bin")
"""A project that contains one of these, such as `/`, leaves no other program to choose."""

_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES")
"""Where any program gets libraries from: a command could leave one in a build folder."""

_writable: set[str] = set()
"""Real paths of the folders that commands may write to, in any chat of any process."""

_not_plain: set[str] = set()
"""Entries of PATH in these folders that were missing or links when the folder was first named: a command could make
them.
"""


def note_writable(folders: Iterable[str]) -> None:
    """Start no program from these folders from now on. Blocking; cheap for folders that are known."""
    found = {os.path.realpath(folder) for folder in folders} - _writable
    new = tuple(folder for folder in found if not any(holds(folder, path) for path in _SYSTEM))
    for entry in _entries(_search_path()) if new else ():
        inside = next((folder for folder in new if _lies_in(entry, (folder,))), None)
        if inside and not _is_plain(entry, inside):
            _not_plain.add(entry)
    _writable.update(new)


def is_writable(path: str) -> bool:
    """Return whether a command may change this file or folder, or what it links to."""
    return _lies_in(path, tuple(_writable))


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program, by `path` or else by the PATH of this process; None if there is none.

    A relative entry of PATH counts as none, and so does one that commands may write to: it would find a program in
    the project.
    """
    for entry in _entries(_search_path(path)):
        found = None if is_writable(entry) else shutil.which(name, path=entry)
        if found and os.path.isabs(found) and not is_writable(found):
            return found
    return None


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program that we start outside of the sandbox on our own account: its loader and its
    PATH search nothing that commands may write to.
    """
    kept = {name: value for name, value in environ.items() if name not in _LOADER}
    for name in (*_LOADER, "PATH"):
        if name in environ:
            kept[name] = os.pathsep.join(each for each in _entries(environ[name]) if not is_writable(each))
    return {name: value for name, value in kept.items() if value or name not in _LOADER}


def outside_path(path: str) -> str:
    """Return PATH for the programs of the user that run outside of the sandbox.

    Folders of a project stay, since the user may mean them; the sandbox keeps them as they are (`path_folders`).
    """
    return os.pathsep.join(entry for entry in _entries(path) if entry not in _not_plain)


def writable_programs(names: Iterable[str]) -> list[str]:
    """Return the files that PATH finds outside of the sandbox for these names, and that commands may write to, such as
    the script behind `node_modules/.bin/eslint`.
    """
    path = outside_path(_search_path())
    found = (shutil.which(name, path=path) for name in dict.fromkeys(names) if name and os.sep not in name)
    return [os.path.realpath(program) for program in found if program and is_writable(program)]


def path_folders(folders: Iterable[str], path: str | None = None) -> list[str]:
    """Return the entries of PATH in these folders, and the whole of a virtual environment whose programs are there."""
    within = tuple(map(os.path.realpath, folders))
    found = (entry for entry in _entries(_search_path(path)) if _lies_in(entry, within))
    real = (os.path.realpath(_environment_of(entry) or entry) for entry in found)
    return [folder for folder in dict.fromkeys(real) if folder not in within and os.path.isdir(folder)]


def _search_path(path: str | None = None) -> str:
    return os.environ.get("PATH", os.defpath) if path is None else path


def _entries(path: str) -> Iterator[str]:
    return (entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


def _lies_in(path: str, folders: tuple[str, ...]) -> bool:
    spellings = {os.path.normpath(path), os.path.realpath(path)} if folders else ()
    return any(holds(folder, each) for each in spellings for folder in folders)


def _is_plain(path: str, folder: str) -> bool:
    """Return whether a path leads to an existing folder beneath `folder`, and by no link in it. The sandbox can keep
    only such a folder as it is.
    """
    here = path.rstrip("/")
    if os.path.realpath(here) == folder:
        return False
    while os.path.realpath(here) != folder:
        if os.path.islink(here) or not os.path.isdir(here) or os.path.dirname(here) == here:
            return False
        here = os.path.dirname(here)
    return True


def _environment_of(entry: str) -> str | None:
    """Return the virtual environment whose programs are in a folder: they load packages that it holds."""
    above = os.path.dirname(entry.rstrip("/"))
    return above if os.path.isfile(os.path.join(above, "pyvenv.cfg")) else None
