"""`sidecar insight`: serve the local page until Ctrl-C or the end of the process that started it."""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import threading
import webbrowser
from argparse import Namespace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from sidecar_protocol.messages import Status

from sidecar.insight.server import InsightServer, open_insight
from sidecar.settings.files import default_data_dir

from ..client import spawn

PARENT_CHECK_S = 0.5  # seconds between two looks at the process that started this one


def insight(options: Namespace) -> int:
    anyio.run(_serve, options)
    return 0


async def _serve(options: Namespace) -> None:
    servers: list[InsightServer] = []

    def tell(_status: Status) -> None:
        for each in servers:
            each.tell()

    async with (
        spawn(options, on_status=tell) as app,
        open_insight(app.call, _database_name(options)) as server,
        anyio.create_task_group() as tasks,
    ):
        servers.append(server)
        tasks.start_soon(_end_with_parent, tasks)
        if sys.platform == "win32":
            _announce(server.guard.address, options)
            await anyio.sleep_forever()  # Ctrl-C arrives as KeyboardInterrupt
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            _announce(server.guard.address, options)
            async for _ in signals:
                tasks.cancel_scope.cancel()


def _announce(address: str, options: Namespace) -> None:
    print(address, flush=True)
    if options.browser and sys.stdout.isatty():
        print("It can be opened once. Ctrl-C ends the page.", file=sys.stderr)
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


async def _end_with_parent(tasks: TaskGroup) -> None:
    """End when the parent is gone, or closes the pipe that it gave as stdin."""
    parent = os.getppid()
    closed = threading.Event()
    if _is_pipe(0):
        threading.Thread(target=_read_to_end, args=(0, closed), daemon=True).start()
    while True:
        await anyio.sleep(PARENT_CHECK_S)
        if closed.is_set() or os.getppid() != parent:
            tasks.cancel_scope.cancel()
            return


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read_to_end(descriptor: int, closed: threading.Event) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except OSError:
        pass
    closed.set()


def _database_name(options: Namespace) -> str:
    """The name of the database in addresses: that of its folder, in letters that an address may have."""
    folder = getattr(options, "data_dir", None) or os.environ.get("SIDECAR_DATA_DIR") or default_data_dir()
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(folder).name).strip("-") or "sidecar"
