"""The only way to open a file for reading at a path from outside: from a client, a setting, the name of a model.

Only regular files, without blocking, and none of the process's own database (`own_files`), through any link. Imports
little, since the settings are read before anything else is loaded.
"""

from __future__ import annotations

import errno
import os
import stat

from . import own_files
from .kernel_files import kernel_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Opening must neither wait for the writer of a FIFO nor acquire a controlling terminal.
OPEN_FLAGS: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_O_PATH: int | None = getattr(os, "O_PATH", None)

_REASONS = {
    errno.ENOENT: "not_found",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EROFS: "readonly",
    errno.EISDIR: "kind",
    errno.ENOTDIR: "kind",
    errno.ENAMETOOLONG: "name",
    errno.ELOOP: "link",
    errno.EFBIG: "too_large",
}


class FileRefused(Exception):
    """The file cannot be read or written; the message says why, without the path.

    `reason`: own_file, kind, exists, link, too_large, not_found, name, permission, full, readonly, io.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def open_regular(path: str) -> int:
    """Return a descriptor to read a regular file from; the caller closes it. Raises FileRefused or OSError when there
    is none.

    The target of the path is pinned first without opening it (O_PATH), checked, and then opened through that pin: so
    a database file is refused before it is open, and nobody can replace it between check and opening.
    """
    if _O_PATH is not None:
        pin = os.open(path, _O_PATH)
        try:
            return open_pinned(pin, os.O_RDONLY, check_regular)
        except (FileNotFoundError, PermissionError):
            pass  # /proc is not mounted, or the file is not readable: the system reports below which
        finally:
            os.close(pin)
    check_regular(os.stat(path))
    return check_descriptor(os.open(path, os.O_RDONLY | OPEN_FLAGS), check_regular)


def read_regular(path: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. A FIFO, a device, a folder and a file that is too large are refused."""
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            # One byte more detects a file that has grown since.
            data = file.read(max_bytes + 1) if size <= max_bytes else b""
    except (OSError, ValueError) as error:
        raise refusal_for(error) from error
    size = max(size, len(data))
    if size > max_bytes:
        raise FileRefused("too_large", f"it has {size} bytes, more than {max_bytes}")
    return data


def check_regular(found: os.stat_result) -> None:
    """Raise FileRefused unless this is a regular file, not ours, on a file system that stores files."""
    if own_files.is_own(found):
        raise own_file_refusal()
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused("kind", "it is not a regular file")
    # No file of the kernel's file systems occupies a block. So the list of mounts is read only for few others.
    if not getattr(found, "st_blocks", 1):
        check_device(found)


def open_pinned(pin: int, flags: int, check: Callable[[os.stat_result], None]) -> int:
    """Open the very inode that `pin` holds. /proc is trusted here: the path consists of a number only."""
    check(os.fstat(pin))
    return check_descriptor(os.open(f"/proc/self/fd/{pin}", flags | OPEN_FLAGS), check)


def check_descriptor(fd: int, check: Callable[[os.stat_result], None]) -> int:
    """Return the descriptor, unless `check` raises about what was opened."""
    found = os.fstat(fd)
    try:
        check(found)
    except BaseException:
        # Closing any descriptor of a file drops this process's locks on it, and our database depends on its locks. So
        # a file that was swapped in between the checks stays open: leaking a descriptor is better.
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
        raise
    return fd


def refusal_for(error: OSError | ValueError) -> FileRefused:
    """Return the refusal for an error of the system."""
    if isinstance(error, OSError):
        return FileRefused(_REASONS.get(error.errno or 0, "io"), error.strerror or str(error))
    return FileRefused("name", str(error))


def check_device(found: os.stat_result) -> None:
    """Raise FileRefused for a file or folder of /proc, /sys and the like."""
    if found.st_dev in kernel_devices():
        raise FileRefused("kind", "it belongs to the kernel")


def own_file_refusal() -> FileRefused:
    return FileRefused("own_file", "it belongs to the sidecar's own database")
