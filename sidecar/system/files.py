"""Files as bytes: only regular ones are read, bounded, without waiting; a written one appears whole or not at all."""

from __future__ import annotations

import os
import stat


class FileRefused(Exception):
    """The file cannot be read or written; the message says why, without the path."""


def read_regular(path: str, max_bytes: int) -> bytes:
    """The bytes of a regular file. A FIFO, a device or a folder is refused, and so is what is too large."""
    try:
        # Non-blocking, so that a FIFO without a writer cannot hold us; then only regular files pass.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise FileRefused("it is not a regular file")
            if found.st_size > max_bytes:
                raise FileRefused(f"it has {found.st_size} bytes, more than {max_bytes}")
            with open(fd, "rb", closefd=False) as file:
                return file.read(max_bytes)
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        raise FileRefused(_why(error)) from error


def write_whole(path: str, data: bytes) -> None:
    """Put the file in place at once, readable by its owner alone; a reader never sees half of it."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
    except (OSError, ValueError) as error:
        raise FileRefused(_why(error)) from error


def sync_folder(folder: str) -> None:
    """Without this a new name may be lost with the power. Windows cannot open a folder for it."""
    if os.name == "nt":
        return
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
