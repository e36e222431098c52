"""A folder in which what a page says can be done: `.venv` is there, home, data and settings are the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.patience import PATIENCE_S

_KEPT = ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")


class Folder(NamedTuple):
    path: Path
    env: dict[str, str]

    def run(self, *command: str) -> str:
        """What a command prints that must succeed, without an input."""
        done = subprocess.run(
            command,
            cwd=self.path,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SIDECAR_DATA_DIR": str(tmp_path / "data"),
        "SIDECAR_MODEL": "echo:",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    return Folder(tmp_path, kept | own)
