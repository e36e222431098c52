"""Wait for the end of a process: by pidfd on Linux, by kqueue on macOS, by polling elsewhere."""

from __future__ import annotations

import os
import select
import sys

import anyio
import anyio.to_thread

from .processes import pid_exists

POLL_S = 0.5
"""The shutdown limit of the protocol is two seconds; polling twice a second leaves most of them."""


async def wait_for_exit(pid: int) -> None:
    """Return when the process `pid` has ended."""
    if sys.platform == "linux":
        await _wait_by_pidfd(pid)
    elif sys.platform == "darwin":
        await anyio.to_thread.run_sync(_wait_by_kqueue, pid, abandon_on_cancel=True)
    else:
        await _wait_by_polling(pid)


async def _wait_by_pidfd(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError:
        await _wait_by_polling(pid)
        return
    try:
        await anyio.wait_readable(fd)
    finally:
        os.close(fd)


def _wait_by_kqueue(pid: int) -> None:
    if sys.platform != "darwin":
        return
    queue = select.kqueue()
    watch = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
    try:
        queue.control([watch], 1)
    except ProcessLookupError:
        return
    finally:
        queue.close()


async def _wait_by_polling(pid: int) -> None:
    while pid_exists(pid):  # noqa: ASYNC110  there is nothing to wait on
        await anyio.sleep(POLL_S)
