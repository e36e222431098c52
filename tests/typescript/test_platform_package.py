"""The npm package of a platform, with a program in it that runs as it is."""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest

from release import npm

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_TYPESCRIPT"), reason="`make test-typescript-slow` has npm"
)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder like that of a frozen program: an executable, what it needs beside it, and a link."""
    folder = tmp_path / "sidecar"
    (folder / "_internal").mkdir(parents=True)
    (folder / "_internal" / "start.py").write_text("from sidecar.__main__ import main\nmain()\n")
    (folder / "_internal" / "linked.py").symlink_to("start.py")
    start = folder / "sidecar"
    start.write_text(f'#!/bin/sh\nexec "{sys.executable}" "${{0%/*}}/_internal/linked.py" "$@"\n')
    start.chmod(0o755)
    return folder


def test_the_program_runs_out_of_the_package(program: Path, tmp_path: Path) -> None:
    package = npm.write_package(program, tmp_path)

    npm.check_package(package)

    with tarfile.open(package) as archive:
        assert sorted(archive.getnames()) == [
            "package/bin/_internal/linked.py",
            "package/bin/_internal/start.py",
            "package/bin/sidecar",
            "package/package.json",
        ]
    assert [path.name for path in tmp_path.glob("platform-package")] == []
