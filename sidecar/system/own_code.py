"""Where the code of this process is. A command must not change it: it runs outside of the sandbox.

It is in a project whose virtual environment the program is installed in, and in a home that is the project.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable

from .folders import holds

_SITE = ("site-packages", "dist-packages")


def own_code_in(folders: Iterable[str]) -> list[str]:
    """Return the files and folders of our code that are in one of these folders, and not the folder itself."""
    return _beneath(_own_code(), folders)


def own_environment_in(folders: Iterable[str]) -> list[str]:
    """Return the same with the whole virtual environment, whose interpreter and scripts start it."""
    whole = () if sys.prefix == sys.base_prefix else (os.path.realpath(sys.prefix),)
    return _beneath((*_own_code(), *whole), folders)


def _beneath(paths: Iterable[str], folders: Iterable[str]) -> list[str]:
    real = [os.path.realpath(folder) for folder in folders]
    return [path for path in paths if path not in real and any(holds(each, path) for each in real)]


@functools.cache
def _own_code() -> tuple[str, ...]:
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    beside = os.path.dirname(package)
    # What is installed beside the package is loaded too; beside a working copy of it there is everything else.
    found = [package, beside] if os.path.basename(beside) in _SITE else [package]
    started = (sys.argv[0], os.path.join(sys.prefix, "pyvenv.cfg"))
    found += (os.path.realpath(path) for path in started if os.path.isfile(path))
    return tuple(dict.fromkeys(found))
