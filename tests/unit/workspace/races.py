"""The attacker and the one attacked: two names exchanged by a process, and something done until both were met."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sidecar.model.failures import Refused
from tests.support.patience import PATIENCE_S

TRIES = 2000
PATIENCE = 90.0  # seconds; a second core needs milliseconds
SWAP = """
import os, sys, threading
one, other = sys.argv[1:]
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set())).start()
print(flush=True)
while not done.is_set():
    for old, new in ((one, "aside"), (other, one), (one, other), ("aside", one)):
        os.rename(old, new)
"""
# With no moment in between in which there is neither, which would let a folder of that name be made.
SWAP_AT_ONCE = """
import ctypes, sys, threading
one, other = (name.encode() for name in sys.argv[1:])
exchange = lambda: ctypes.CDLL(None).renameat2(-100, one, -100, other, 2)
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set())).start()
print(flush=True)
while not done.is_set():
    assert (exchange(), exchange()) == (0, 0)
"""
Outcome = bytes | str


def often(attempt: Callable[[], Outcome], until: set[Outcome], tries: int = TRIES) -> Counter[Outcome]:
    """How many times each outcome came, in `tries` and then until all of `until` were met: a busy machine
    may run one side of the race for a while before it runs the other."""
    seen: Counter[Outcome] = Counter()
    give_up = time.monotonic() + PATIENCE
    while seen.total() < tries or (not until <= set(seen) and time.monotonic() < give_up):
        try:
            seen[attempt()] += 1
        except Refused as refused:
            seen[refused.name] += 1
    return seen


@contextmanager
def swapping(folder: Path, one: str, other: str, *, script: str = SWAP) -> Iterator[None]:
    """Exchange the two names for as long as the block runs: in a process, as a thread would wait for us."""
    with subprocess.Popen(
        [sys.executable, "-c", script, one, other], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        attacker.stdout.readline()
        try:
            yield
        finally:
            attacker.stdin.close()
            assert attacker.wait(PATIENCE_S) == 0
