"""What the binary runs.

The one file unpacks itself: its process unpacks into a temporary folder, starts itself again as a child, and removes
the folder when the child has ended. If that process is killed, the child ends too, and a second child removes the
folder.
"""

import ctypes
import os
import shutil
import signal
import sys
import time

from sidecar.__main__ import main

PR_SET_PDEATHSIG = 1
PARENT_S = 5.0
"""For the parent to remove the folder itself."""


def unpacked_folder() -> str | None:
    """Return the folder that the one file was unpacked into."""
    folder = os.path.realpath(getattr(sys, "_MEIPASS", os.path.dirname(sys.executable)))
    beside = os.path.dirname(os.path.realpath(sys.executable))
    return None if folder == beside or folder.startswith(beside + os.sep) else folder


def end_with_the_parent(folder: str) -> None:
    parent = os.getppid()
    waiting, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        _remove_when_all_have_ended(folder, waiting, parent)
    os.close(waiting)
    # `held` stays open until this process ends, however it ends; programs that it starts do not inherit it.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the signal was asked for
            sys.exit()


def _remove_when_all_have_ended(folder: str, waiting: int, parent: int) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.read(waiting, 1)
    end = time.monotonic() + PARENT_S
    while _is_alive(parent) and time.monotonic() < end:
        time.sleep(0.05)
    if not _is_alive(parent):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


if hasattr(os, "fork") and (unpacked := unpacked_folder()):
    end_with_the_parent(unpacked)
main()
