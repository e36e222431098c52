"""Command lines whose processes try to outlive them, and careless ways of ending them that each one survives.

A process is known by its token: a number that only one `sleep` of the machine was told.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from sidecar.system.process_tree import _find_marked
from sidecar.system.supervisor import process_table, send_signal

End = Callable[[subprocess.Popen[bytes]], None]


def the_shell_alone(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def the_group_by_sigterm(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def the_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


PYTHON = os.path.realpath(sys.executable)
"""The interpreter behind the virtual environment, which may lie in /tmp: the sandbox empties that."""


class Shape(msgspec.Struct, frozen=True):
    """`survives` is the careless end that leaves something of it alive; `processes` carry the token as last word."""

    name: str
    script: str
    survives: End | None
    processes: int = 1

    def written(self, token: str) -> str:
        return self.script.replace("TOKEN", token).replace("PYTHON", PYTHON)


_DAEMON = """PYTHON -S -c '
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        os.environ.clear()
        os.execv("/bin/sleep", ["worker", "TOKEN"])
    os._exit(0)
os.wait()
'; sleep TOKEN"""

SHAPES = [
    Shape("in the foreground", "sleep TOKEN; true", the_shell_alone),
    Shape("in the background", "sleep TOKEN & wait", the_shell_alone),
    Shape("with nohup", "nohup sleep TOKEN >/dev/null 2>&1 & wait", the_shell_alone),
    Shape("disowned", "sleep TOKEN & disown; sleep TOKEN; true", the_shell_alone, 2),
    Shape("a coprocess", "coproc sleep TOKEN; wait", the_shell_alone),
    Shape("in a subshell's subshell", "( ( sleep TOKEN & ) ); sleep TOKEN; true", the_shell_alone, 2),
    Shape("a subshell that holds the pipe", "( echo out; sleep TOKEN; echo more ) & wait", the_shell_alone),
    Shape("shells in shells", "bash -c 'sh -c \"sleep TOKEN & wait\" & wait'; true", the_shell_alone),
    Shape("four at once", "printf 'TOKEN\\n%.0s' 1 2 3 4 | xargs -P4 -n1 sleep", the_shell_alone, 4),
    Shape("a flood", "yes TOKEN; true", the_shell_alone),
    Shape("a flood from the background", "yes TOKEN & yes TOKEN & wait", the_shell_alone, 2),
    Shape(
        "a bomb of five generations",
        "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; exec sleep TOKEN; }; f 5",
        the_shell_alone,
        63,
    ),
    Shape("deaf to SIGTERM", "trap '' TERM; sleep TOKEN; sleep TOKEN", the_group_by_sigterm),
    Shape(
        "deaf to all it can be", "trap '' TERM INT HUP QUIT PIPE; (sleep TOKEN); true", the_group_by_sigterm
    ),
    Shape("deaf and executed", "trap '' TERM; exec sleep TOKEN", the_group_by_sigterm),
    Shape(
        "stopped",
        "sh -c 'kill -STOP $$; : TOKEN' & until grep -q State:.T /proc/$!/status; do :; done; sleep TOKEN; true",
        the_group_by_sigterm,
    ),
    Shape("in a session of its own", "setsid sleep TOKEN & wait", the_group),
    Shape("in a session, forked", "setsid -f sleep TOKEN; sleep TOKEN; true", the_group, 2),
    Shape("sessions in sessions", "setsid -f setsid -f setsid -f sleep TOKEN; sleep TOKEN", the_group, 2),
    Shape("a job with a group of its own", "set -m; sleep TOKEN & wait", the_group),
    Shape("a group made by timeout", "timeout 1000 sleep TOKEN; true", the_group),
    Shape("with an empty environment", "env -i setsid -f sleep TOKEN; sleep TOKEN; true", the_group, 2),
    Shape("a daemon without descriptors", _DAEMON, the_group, 2),
    Shape(
        "under another name, with all closed",
        "setsid bash -c 'exec -a kworker/0:1 sleep TOKEN' <&- >&- 2>&- & wait",
        the_group,
    ),
    Shape(
        "that starts again what was ended",
        "setsid sh -c 'trap \"\" TERM; while :; do sleep TOKEN; done' & wait",
        the_group,
    ),
    Shape(
        "that forks on in new sessions",
        "f() { setsid -f sleep TOKEN; }; f; f; f; f; exec sleep TOKEN",
        the_group,
        5,
    ),
    # The parent of their twins would be the test itself.
    Shape("that kills its parent", "sleep TOKEN & setsid sleep TOKEN & kill -KILL $PPID; wait", None, 0),
    Shape(
        "that stops its parent",
        "kill -STOP $PPID; env -i setsid -f sleep TOKEN; sleep TOKEN; true",
        None,
        2,
    ),
]
CATCHING = [shape for shape in SHAPES if shape.survives]
LEAVING = [shape for shape in SHAPES if shape.survives is the_group]
"""Those of the shapes that leave the command's process group."""


_ON_THE_WAY = {b"setsid", b"timeout", b"env", b"nohup", b"xargs"}
"""They get the token as well, but become or start the process that is meant."""


def new_token() -> str:
    return f"9{random.randrange(10**6):06}.{random.randrange(10**6):06}"


def mentions(token: str) -> set[int]:
    """The living processes whose command line holds the token, if only as a part of a script."""
    return {pid for pid, words in _command_lines() if any(token.encode() in word for word in words)}


def carriers(token: str) -> set[int]:
    """The living processes that were told the token as their last word: those that a script has come to start."""
    lines = [(pid, words) for pid, words in _command_lines() if words[-1] == token.encode()]
    return {pid for pid, words in lines if words[0] not in _ON_THE_WAY}


def survivors(key: str) -> set[int]:
    """The living processes that carry the mark of this call, or of a part of it."""
    return _find_marked({key}, process_table())


def clear(token: str) -> None:
    """End what a careless end has left."""
    while found := mentions(token):
        send_signal(found, signal.SIGKILL)


def _command_lines() -> list[tuple[int, list[bytes]]]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")[:-1]
        except OSError:
            continue
        if words:  # a zombie has none
            found.append((int(folder.name), words))
    return found
