"""Where programs are installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .lazy import lazy_module

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")  # brings three compression modules with it


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program, by `path` or else by the PATH of this process; None if there is none.

    A relative entry of PATH counts as none: it would find a program in the project.
    """
    found = shutil.which(name, path=path)
    return found if found and os.path.isabs(found) else None
