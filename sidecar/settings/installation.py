"""The random identity of this installation: a file in the user's configuration folder, outside of every data folder,
so that no copied database contains it. It tells the user's own database from a foreign one (`store/origin`).
"""

from __future__ import annotations

import os
import uuid
from hashlib import sha256

from . import files
from .errors import SettingsError

FILE_NAME = "installation"
LENGTH = 32
"""Hexadecimal digits: 128 random bits."""


class Identity:
    """`is_new` says that it was created by this call."""

    __slots__ = ("id", "is_new")

    def __init__(self, id: str, is_new: bool) -> None:
        self.id = id
        self.is_new = is_new


def identify() -> Identity:
    """Return the identity of this installation, and create it when there is none. When it cannot be stored, it is
    derived from the machine.
    """
    path = os.path.join(os.path.dirname(files.user_file()), FILE_NAME)
    found = _read(path)
    if found is not None:
        return Identity(found, False)
    try:
        return Identity(_make(path), True)
    except FileExistsError:  # another process created it first
        return Identity(_read(path) or _of_machine(), False)
    except OSError:
        return Identity(_of_machine(), False)


def _read(path: str) -> str | None:
    try:
        text = (files.read_bytes(path) or b"").decode("ascii", "replace").strip()
    except SettingsError:
        return None
    return text if len(text) == LENGTH and set(text) <= set("0123456789abcdef") else None


def _make(path: str) -> str:
    """Write a new identity; the file appears complete or not at all, and never replaces another."""
    made = os.urandom(LENGTH // 2).hex()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.{os.urandom(4).hex()}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(made.encode() + b"\n")
            file.flush()
            os.fsync(fd)
        if os.path.lexists(path) and _read(path) is None:
            os.replace(part, path)  # the file is no identity: empty or truncated
        else:
            _name(part, path)
    finally:
        if os.path.lexists(part):
            os.unlink(part)
    return made


def _name(part: str, path: str) -> None:
    """Give the file its name; FileExistsError when it is taken."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.rename(part, path)


def _of_machine() -> str:
    """For a read-only configuration folder: the same at each start, and not contained in a database."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            machine = file.read().strip()
    except (OSError, ValueError):
        machine = f"{uuid.getnode():x}"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return sha256(f"sidecar {machine} {user}".encode()).hexdigest()[:LENGTH]
