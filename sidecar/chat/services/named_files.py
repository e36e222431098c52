"""Files that a client names by an absolute path: read for an import or an attachment, written for an export.

Maps a refusal to an error of the wire: -32003 for an existing file that may not be replaced, otherwise -32602 with
the reason of `system/safe_open`.
"""

from __future__ import annotations

import os
from typing import BinaryIO

import anyio.to_thread

from ...model.failures import Refused
from ...system.files import write_whole
from ...system.safe_open import FileRefused, open_regular, read_regular, refusal_for

READ_BYTES = 256 * 1024
"""The buffer for a file that is read line by line."""

_QUOTED = 300
"""Characters of a refused path in an error: enough to recognise it, whatever was sent."""


async def read_client_file(path: str, max_bytes: int, field: str = "path") -> bytes:
    """The bytes of the regular file at `path`."""
    return await anyio.to_thread.run_sync(_read, path, max_bytes, field)


async def open_named(path: str, max_bytes: int, field: str = "path") -> BinaryIO:
    """Open the regular file at `path` for reading in parts; the caller closes it."""
    return await anyio.to_thread.run_sync(_open, path, max_bytes, field)


async def write_client_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write a file atomically; replace an existing one only with `overwrite`."""
    await anyio.to_thread.run_sync(_write, path, data, overwrite)


def check_absolute(path: str, field: str = "path") -> None:
    """Refuse a relative path: the client does not know the sidecar's working folder."""
    if not os.path.isabs(path) or "\0" in path:
        raise _refusal(field, path, "an absolute path", "name")


def _read(path: str, max_bytes: int, field: str) -> bytes:
    check_absolute(path, field)
    try:
        return read_regular(path, max_bytes)
    except FileRefused as refusal:
        raise _refusal(field, path, f"a file that can be read: {refusal}", refusal.reason) from refusal


def _open(path: str, max_bytes: int, field: str) -> BinaryIO:
    check_absolute(path, field)
    try:
        file = os.fdopen(open_regular(path), "rb", READ_BYTES)
    except (OSError, ValueError) as error:
        refusal = refusal_for(error)
        raise _refusal(field, path, f"a file that can be read: {refusal}", refusal.reason) from error
    except FileRefused as refusal:
        raise _refusal(field, path, f"a file that can be read: {refusal}", refusal.reason) from refusal
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        file.close()
        expected = f"a file of at most {max_bytes} bytes; it has {size}"
        raise _refusal(field, path, expected, "too_large")
    return file


def _write(path: str, data: bytes, overwrite: bool) -> None:
    check_absolute(path)
    try:
        write_whole(path, data, overwrite=overwrite)
    except FileRefused as refusal:
        if refusal.reason == "exists":
            raise _existing(path, refusal) from refusal
        raise _refusal("path", path, f"a file that can be written: {refusal}", refusal.reason) from refusal


def _existing(path: str, refusal: FileRefused) -> Refused:
    return Refused(
        "already_exists",
        f"{_wire_text(path)}: {refusal}: give `overwrite: true` to replace a regular file, or name another",
        reason="exists",
        params={"path": _wire_text(path), "field": "overwrite"},
    )


def _refusal(field: str, path: str, expected: str, reason: str) -> Refused:
    params = {"field": field, "expected": expected, "path": _wire_text(path)}
    return Refused("invalid_params", f"`{field}`: {expected}", reason=reason, params=params)


def _wire_text(path: str) -> str:
    """The path as well-formed text for the wire."""
    return path[:_QUOTED].encode("utf-8", "backslashreplace").decode()
