"""Small file systems of a test's own, mounted for as long as the test runs. Only root can."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = {
    "tmpfs": ["tmpfs"],
    "ext4-1k": ["-b", "1024"],
    "ext4-4k": ["-b", "4096"],
}


@functools.cache
def unable() -> str:
    """Why nothing can be mounted here; empty when it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can mount a file system"
    if not shutil.which("mkfs.ext4") or not shutil.which("mount"):
        return "mkfs.ext4 or mount is not installed"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder), "ext4-4k"), mounted(Path(folder), "tmpfs"):
                return ""
        except subprocess.CalledProcessError as error:
            return f"no loop devices or mounts: {(error.stderr or b'').decode(errors='replace').strip()}"


@contextmanager
def mounted(folder: Path, kind: str, kib: int = 6144, inodes: int | None = None) -> Iterator[Path]:
    """A file system of that size in `folder`."""
    place = folder / f"disk-{kind}"
    place.mkdir()
    if kind == "tmpfs":
        more = f",nr_inodes={inodes}" if inodes else ""
        _run("mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700{more}", "tmpfs", str(place))
    else:
        image = folder / f"{kind}.img"
        with image.open("wb") as file:
            file.truncate(kib * 1024)
        few = ["-N", str(inodes)] if inodes else []
        _run("mkfs.ext4", "-q", "-F", "-m", "0", *KINDS[kind], *few, str(image))
        _run("mount", "-o", "loop", str(image), str(place))
    try:
        yield place
    finally:
        _run("umount", "-l", str(place))


def remount(place: Path, mode: str) -> None:
    """`ro` or `rw`."""
    _run("mount", "-o", f"remount,{mode}", str(place))


def fill(path: Path) -> None:
    """Write into the file until the disk takes no more."""
    with path.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while True:
                    file.write(b"\1" * size)
            except OSError:
                continue


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
