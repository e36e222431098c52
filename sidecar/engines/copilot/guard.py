"""Starts a program beneath our supervisor for a parent that cannot pass file descriptors: `guard.py PIPE PROGRAM…`.

PIPE is the path of the lifeline, a pipe that the sidecar holds open, under /proc. Standard library only; the program
imports this file only for its path.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    pipe, supervisor, *program = sys.argv[1:]
    try:
        lifeline = os.open(pipe, os.O_RDONLY)
    except OSError:
        sys.exit(1)  # the sidecar has ended meanwhile
    status = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, True)
    orders = [str(lifeline), str(status), "0", "", ""]
    os.execv(sys.executable, [sys.executable, "-I", "-S", supervisor, *orders, *program])


if __name__ == "__main__":
    main()
