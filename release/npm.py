"""The optional npm package of this platform: a frozen program that the TypeScript client finds. Needs Node and npm."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from . import smoke

ROOT = Path(__file__).parents[1]


def is_here() -> bool:
    return all(shutil.which(name) for name in ("node", "npm"))


def write_package(program: Path, dist: Path) -> Path:
    """Write the package of `program`, a file or a folder with `sidecar` in it, to `dist`, and return the file."""
    folder = dist / "platform-package"
    script = ROOT / "clients" / "typescript" / "scripts" / "platform-package.mjs"
    _run("node", str(script), str(program), str(folder))
    name = _run("npm", "pack", "--silent", "--pack-destination", str(dist), str(folder)).split()[-1]
    shutil.rmtree(folder)
    return dist / name


def check_package(package: Path) -> None:
    """Try the program as it comes out of the package."""
    with tempfile.TemporaryDirectory(prefix="sidecar-package-") as folder:
        with tarfile.open(package) as archive:
            archive.extractall(folder, filter="data")
        suffix = ".exe" if sys.platform == "win32" else ""
        smoke.check([str(Path(folder, "package", "bin", f"sidecar{suffix}"))])


def _run(*command: str) -> str:
    path = shutil.which(command[0]) or command[0]
    return subprocess.run([path, *command[1:]], check=True, stdout=subprocess.PIPE, text=True).stdout
