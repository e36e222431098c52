"""`sidecar upgrade`: print the command that upgrades this installation. Runs nothing and needs no network."""

from __future__ import annotations

import sys
from argparse import Namespace

from sidecar import __version__
from sidecar.system.installation import upgrade_command


def show(options: Namespace) -> int:
    """The command goes to stdout, everything else to stderr, so that `sidecar upgrade | sh` runs it."""
    upgrade = upgrade_command()
    print(f"This is sidecar {__version__}, installed as {upgrade.kind}.", file=sys.stderr)
    if upgrade.command:
        print("Run this for a newer version:", file=sys.stderr)
        print(upgrade.line, flush=True)
    if upgrade.hint:
        print(upgrade.hint, file=sys.stderr)
    print("Then restart your apps. `sidecar doctor` tells which sidecars are older.", file=sys.stderr)
    return 0
