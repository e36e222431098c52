"""strace as a source of faults: it joins a running sidecar and lets system calls on the database's files fail."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import PATIENCE_S

FILES = ("sidecar.db", "sidecar.db-wal", "sidecar.db-shm", "sidecar.db-reserve", "sidecar.db-lock")
_EFFECTS = {"KILL": "signal=KILL", "HANG": "delay_enter=600s", "SHORT": "retval=0"}
_CALL = re.compile(r"(?:\d+ +)?(\w+)\(")


@functools.cache
def unable() -> str:
    """Why nothing can be traced here; empty when it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        attach = ["strace", "-p", str(other.pid), "-o", os.devnull]
        with subprocess.Popen(attach, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            said = tracer.stderr.readline()
            other.terminate()
    return "" if "attached" in said and not tracer.returncode else said or "strace cannot attach"


@dataclass(frozen=True)
class Fault:
    """What befalls the `when`th call of a name: an errno, `KILL`, `HANG`, or `SHORT`, which writes nothing of what was
    asked and says so. With `on`, every one after it too."""

    call: str
    effect: str
    when: int
    on: bool = False

    @property
    def rule(self) -> str:
        what = _EFFECTS.get(self.effect, f"error={self.effect}")
        return f"inject={self.call}:{what}:when={self.when}{'+' if self.on else ''}"


class Trace:
    """What a tracer wrote."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def calls(self) -> Counter[str]:
        return Counter(found[1] for line in self._lines() if (found := _CALL.match(line)))

    @property
    def injected(self) -> int:
        return sum("INJECTED" in line for line in self._lines())

    def _lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()


@contextmanager
def joined(
    pid: int, data_dir: Path, log: Path, fault: Fault | None = None, files: Sequence[str] = FILES
) -> Iterator[Trace]:
    """Trace the process's calls on the database's files, or on some of them, while this lasts."""
    with subprocess.Popen(
        ["strace", "-f", "-p", str(pid), "-o", str(log), *paths(data_dir, files), *_rules(fault)],
        stderr=subprocess.PIPE,
    ) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        assert b"attached" in said, said
        try:
            yield Trace(log)
        finally:
            tracer.terminate()
            tracer.wait(PATIENCE_S)


def launcher(data_dir: Path, log: Path, fault: Fault) -> list[str]:
    """What to put before a command line, so that it is traced from its first call on."""
    only = ["-e", f"trace={fault.call}"]
    fast = (
        [] if fault.effect == "KILL" else ["--seccomp-bpf"]
    )  # with it, only the first call is ever killed at
    # Files are renamed to their name: by that end strace does not know them.
    files = [] if fault.call.endswith("rename") else paths(data_dir)
    return ["strace", "-f", *fast, "-o", str(log), *files, *only, *_rules(fault)]


def paths(data_dir: Path, files: Sequence[str] = FILES) -> list[str]:
    return [part for name in files for part in ("-P", str(data_dir / name))]


def _rules(fault: Fault | None) -> list[str]:
    return ["-e", fault.rule] if fault else []


def spread(count: int, points: int) -> Sequence[int]:
    """As many of 1 … count as are wanted, evenly."""
    wanted = min(count, points)
    return sorted({1 + step * count // wanted for step in range(wanted)}) if wanted else ()
