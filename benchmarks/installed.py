"""An environment of its own with our wheel in it: what a user has, unlike a checkout that is installed for editing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(module: str, arguments: list[str]) -> int:
    """Run a benchmark with `SIDECAR_COMMAND` naming our wheel, installed as a user installs it: pip compiles it."""
    with tempfile.TemporaryDirectory(prefix="sidecar-wheel-") as folder:
        print("installing the wheel", file=sys.stderr, flush=True)
        environment = os.environ | {"SIDECAR_COMMAND": shlex.join(_install(Path(folder)))}
        return subprocess.run(
            [sys.executable, "-m", module, *arguments], env=environment, check=False
        ).returncode


def _install(folder: Path) -> list[str]:
    """Build the wheel, install it with its dependencies below `folder`, and return the command that serves."""
    wheels, environment = folder / "wheels", folder / "venv"
    _pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT))
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    _pip(python, "install", *map(str, wheels.glob("*.whl")))
    return [str(environment / "bin" / "sidecar"), "serve"]


def _pip(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)
