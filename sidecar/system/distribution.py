"""The name under which the program is installed, and the other distributions that claim its files.

On PyPI `sidecar` is another project, a widget for JupyterLab that installs a package of the same name. Ours is
`chat-sidecar`; its packages and its command keep their names. Does not know the checks that use this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .lazy import lazy_module

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = lazy_module("importlib.metadata")

NAME = "chat-sidecar"
FORMER_NAME = "sidecar"
"""Our name until 0.1.0. An environment that was set up before the change still has that metadata."""

COMMAND = "sidecar"
ENTRY_POINT = "sidecar.__main__:main"
PACKAGES = ("sidecar", "sidecar_client", "sidecar_protocol")


def install_command(extra: str) -> str:
    """Return the command that installs an optional part of the program."""
    return f"pip install '{NAME}[{extra}]'"


class Claim(NamedTuple):
    """An installed distribution that provides one of our packages or our command."""

    name: str
    version: str
    is_ours: bool
    """Whether it is ours, under the present name or the former one."""
    in_our_folder: bool
    """Whether its package is in the folder that we run from, so that it can replace or remove our files."""


def find_claims(path: Iterable[str] | None = None) -> list[Claim]:
    """Return every distribution on `path` (default: `sys.path`) that claims our packages or our command, in its
    order.
    """
    found = metadata.distributions() if path is None else metadata.distributions(path=list(path))
    return list(_read_claims(found, os.path.dirname(os.path.dirname(__file__))))


def _read_claims(found: Iterable[metadata.Distribution], folder: str) -> Iterator[Claim]:
    seen: set[str] = set()
    for each in found:
        name = _read_name(each)
        if not name or name in seen or not (name in (NAME, FORMER_NAME) or _provides(each)):
            continue
        seen.add(name)
        is_ours = name == NAME or (name == FORMER_NAME and _starts_our_program(each))
        yield Claim(name, each.version, is_ours, _is_same(str(each.locate_file("sidecar")), folder))


def _provides(found: metadata.Distribution) -> bool:
    """Return whether it lists one of our packages or our command. Its lists are searched, not parsed: the doctor
    reads all of them.
    """
    top_level = (found.read_text("top_level.txt") or "").split()
    if any(package in top_level for package in PACKAGES):
        return True
    files = found.read_text("RECORD") or found.read_text("installed-files.txt") or ""
    if any(files.startswith(f"{package}/") or f"\n{package}/" in files for package in PACKAGES):
        return True
    return re.search(rf"^{COMMAND}\s*=", found.read_text("entry_points.txt") or "", re.MULTILINE) is not None


def _starts_our_program(found: metadata.Distribution) -> bool:
    return ENTRY_POINT in (found.read_text("entry_points.txt") or "")


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _read_name(found: metadata.Distribution) -> str:
    """Return the normalized name; empty when an interrupted installation left no metadata, which pip cannot
    uninstall.
    """
    try:
        name: str | None = found.metadata["Name"]
    except FileNotFoundError:
        return ""
    return re.sub(r"[-_.]+", "-", name or "").lower()
