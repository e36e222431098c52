"""How this program was installed: the command that upgrades it, the installed version, and since when it is there.

Knows pip, uv, pipx, editable checkouts and frozen programs. Does not know what prints or checks this.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from . import distribution
from .helper_programs import is_frozen
from .lazy import lazy_module

if TYPE_CHECKING:
    from importlib import metadata
    from urllib import request
else:
    metadata = lazy_module("importlib.metadata")
    request = lazy_module("urllib.request")

RECEIPTS = {"pipx": "pipx_metadata.json", "uv tool": "uv-receipt.toml"}
"""What these tools write into the environment that they make for one program."""

NEW_WHEEL = "chat_sidecar-NEW-VERSION.whl"
"""Stands for a file that only the user can name."""

_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Upgrade(msgspec.Struct, frozen=True):
    """What to run for a newer version; `command` is empty where no command of ours can do it."""

    kind: str
    command: list[str] = []
    hint: str | None = None

    @property
    def line(self) -> str:
        """The command as it is typed into a shell."""
        return subprocess.list2cmdline(self.command) if os.name == "nt" else shlex.join(self.command)


class _DirectoryInfo(msgspec.Struct):
    editable: bool = False


class _VersionControl(msgspec.Struct):
    vcs: str = "git"


class _Origin(msgspec.Struct):
    """`direct_url.json` of an installation that did not come from a package index (PEP 610)."""

    url: str
    dir_info: _DirectoryInfo | None = None
    vcs_info: _VersionControl | None = None


def upgrade_command() -> Upgrade:
    """Return what upgrades this installation."""
    if is_frozen():
        return Upgrade(
            "a program that contains Python",
            hint="It belongs to the app that ships it: update the app, or replace the whole folder by a newer one.",
        )
    found = _distribution()
    if found is None:
        return _checkout("source that is not installed", _SOURCE)
    origin = _origin(found)
    if origin and origin.dir_info and origin.dir_info.editable:
        return _checkout("an editable checkout", _path(origin.url))
    # Without an index that knows the program, the tools cannot find a newer version by themselves.
    new = _new_source(origin) if origin else None
    hint = "Put the path of the newer wheel in its place." if new == NEW_WHEEL else None
    for tool, receipt in RECEIPTS.items():
        if os.path.exists(os.path.join(sys.prefix, receipt)):
            words = tool.split()
            command = [*words, "install", "--force", new] if new else [*words, "upgrade", distribution.NAME]
            return Upgrade(tool, command, hint)
    installer = (found.read_text("INSTALLER") or "").strip()
    pip = (
        ["uv", "pip", "install", "--python", sys.executable]
        if installer == "uv"
        else [sys.executable, "-m", "pip", "install"]
    )
    kind = "uv pip" if installer == "uv" else "pip"
    return Upgrade(kind, [*pip, "--upgrade", new or distribution.NAME], hint)


def installed_version() -> str | None:
    """Return the version on disk, which can be newer than the one that runs; None when nothing is installed."""
    found = None if is_frozen() else _distribution()
    return found.version if found else None


def installed_at() -> float | None:
    """Return when the program that is on disk was put there, in seconds since 1970; None when that is unknown."""
    if is_frozen():
        return os.stat(sys.executable).st_mtime
    found = _distribution()
    if found is None:
        return None
    # The folder is made at each installation. Files in it can be older: uv links them from its cache.
    folder = f"{distribution.NAME.replace('-', '_')}-{found.version}.dist-info"
    try:
        return os.stat(str(found.locate_file(folder))).st_mtime
    except OSError:
        return None


def _distribution() -> metadata.Distribution | None:
    try:
        return metadata.distribution(distribution.NAME)
    except metadata.PackageNotFoundError:
        return None


def _origin(found: metadata.Distribution) -> _Origin | None:
    try:
        return msgspec.json.decode(found.read_text("direct_url.json") or "", type=_Origin)
    except msgspec.DecodeError:
        return None


def _new_source(origin: _Origin) -> str:
    """Return where a newer version comes from, as the tools take it."""
    if origin.vcs_info:
        return f"{origin.vcs_info.vcs}+{origin.url}"
    return _path(origin.url) if origin.dir_info else NEW_WHEEL


def _checkout(kind: str, folder: str) -> Upgrade:
    hint = f"Then run `make setup` in {folder}, which installs what the new version needs."
    return Upgrade(kind, ["git", "-C", folder, "pull", "--ff-only"], hint)


def _path(url: str) -> str:
    return request.url2pathname(url.removeprefix("file://"))
