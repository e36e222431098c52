"""Command lines that stop the process that should end them: with ptrace, with signals, or both.

Those about process 1 are only for a sandbox, where it is bubblewrap's own.
"""

from __future__ import annotations

from tests.unit.system.shapes import Shape

_TRACER = """PYTHON -S -c '
import ctypes, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, SEIZE, INTERRUPT, ALL, TRACEEXIT = 16, 0x4206, 0x4207, 0x40000000, 0x40
def trace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) < 0:
        raise SystemExit("ptrace: " + os.strerror(ctypes.get_errno()))
def stop(pid, data=None):
    trace(SEIZE, pid, data)
    trace(INTERRUPT, pid)
    os.waitpid(pid, ALL)
def first():
    if open("/proc/1/comm").read().strip() != "bwrap":
        raise SystemExit("this is not in a sandbox")
    return 1
def carry():
    os.execv("/bin/sleep", ["tracer", "TOKEN"])
STEPS
'"""

_IN_BOX = '[ "$(cat /proc/1/comm)" = bwrap ] || exit 9'
"""Outside of a sandbox process 1 is the machine's: it must not be touched."""


def _shape(name: str, steps: str, processes: int = 1) -> Shape:
    return Shape(name, _TRACER.replace("STEPS", steps), None, processes)


STOPPING_FIRST = [
    _shape("attached to the first process", "trace(ATTACH, first()); os.waitpid(1, ALL); carry()"),
    _shape("seized the first process", "stop(first()); carry()"),
    _shape("holds the first process at its exit", "trace(SEIZE, first(), TRACEEXIT); carry()"),
    _shape(
        "traces and is stopped itself",
        "stop(first(), TRACEEXIT)\nif os.fork() == 0:\n    carry()\nos.kill(os.getpid(), signal.SIGSTOP)",
    ),
    _shape(
        "traces from a session of its own",
        "if os.fork():\n    os.wait()\nos.setsid()\nos.environ.clear()\nstop(first(), TRACEEXIT)\ncarry()",
    ),
    _shape(
        "traces the first process and stops its own parent",
        "stop(first())\nos.kill(os.getppid(), signal.SIGSTOP) if os.getppid() > 1 else None\ncarry()",
    ),
    Shape("signals the first process", f"{_IN_BOX}; kill -STOP 1; trap '' TERM; sleep TOKEN; true", None),
]

STOPPING_PARENT = [
    _shape("traces the supervisor", "stop(os.getppid(), TRACEEXIT); carry()"),
    _shape(
        "traces the supervisor from a session of its own",
        "top = os.getppid()\nif os.fork():\n    os.wait()\nos.setsid()\nos.environ.clear()\nstop(top)\ncarry()",
    ),
]
"""For commands without a sandbox. The shell replaces itself by the tracer, so its parent is the supervisor."""
