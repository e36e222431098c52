"""A process that gets ready, waits for a signal, does one `replace` and ends at once: what a tracer sees from the
signal on is the write alone.

`python -m tests.unit.workspace.one_write PROJECT PATH OLD NEW [careless]`, where `-` is no file. The exit code says
how it ended: 0 written, 3 refused; anything else is a mistake.
"""

from __future__ import annotations

import os
import signal
import sys

from sidecar.model.failures import Refused
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, replace

TOKEN = "feedface"


def main(project: str, path: str, old: str, new: str, careless: str = "") -> None:
    expected = None if old == "-" else digest(old.encode())
    data = None if new == "-" else new.encode()
    workspace = Workspace(project)
    workspace.list_dir(".")  # what the system is asked once, and imported then, has been
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    os.write(1, b"ready\n")
    signal.sigwait({signal.SIGUSR1})
    try:
        if careless:
            _in_place(os.path.join(project, path), data or b"")
        else:
            replace(workspace, path, expected, data, token=TOKEN)
    except Refused:
        os._exit(3)
    os._exit(0)


def _in_place(path: str, data: bytes) -> None:
    """Deliberately broken, as most are: the old bytes are cut off, and then the new ones are written."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)


if __name__ == "__main__":
    main(*sys.argv[1:])
