"""`python -m release`: build the wheel and the binaries, try each as a user would, and measure how fast it starts.

What it makes is in `dist/`: the wheel, `sidecar/` (a folder with the program, recommended), `sidecar-TRIPLE` (one
file), `bom.json` (CycloneDX) and, where npm is, the npm package of this platform for the TypeScript client.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from . import measure, npm, smoke
from .freeze import freeze

ROOT = Path(__file__).parents[1]
PYINSTALLER = "pyinstaller==6.22.3"
CYCLONEDX = "cyclonedx-bom>=7.5"


def main() -> int:
    arguments = _arguments()
    dist, build = arguments.dist.resolve(), ROOT / "build"
    shutil.rmtree(build, ignore_errors=True)
    dist.mkdir(parents=True, exist_ok=True)
    wheel = _build_wheel(dist)
    environment = _install(build / "venv", wheel, arguments.include)
    _write_bill_of_materials(environment, build, dist / "bom.json")
    commands = {"virtual environment": [str(_program(environment, "sidecar"))]}
    # Nothing but PyInstaller is beside what is shipped: it could be frozen too, and is not in the bill of materials.
    tools = _install(build / "tools", wheel, arguments.include, PYINSTALLER)
    for title, one_file in (("folder", False), ("one file", True)):
        _say(f"freezing: {title}")
        program = freeze(_python(tools), build, dist, one_file=one_file, include=arguments.include)
        commands[title] = [str(program)]
    for title, command in commands.items():
        _say(f"trying: {title}")
        smoke.check(command)
    _pack_for_npm(Path(commands["folder"][0]).parent, dist)
    print(measure.table(commands, dist, arguments.runs))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where to (default: dist)")
    parser.add_argument("--runs", type=int, default=7, help="starts of each that are measured (default: 7)")
    parser.add_argument(
        "--include", nargs="*", default=[], metavar="MODULE", help="optional modules: xllamacpp, keyring"
    )
    return parser.parse_args()


def _build_wheel(dist: Path) -> Path:
    _say("building the wheel")
    for old in dist.glob("chat_sidecar-*.whl"):
        old.unlink()
    _pip(
        Path(sys.executable),
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(dist),
        str(ROOT),
    )
    (wheel,) = dist.glob("chat_sidecar-*.whl")
    return wheel


def _install(environment: Path, wheel: Path, include: list[str], *more: str) -> Path:
    _say(f"installing into {environment.relative_to(ROOT)}")
    venv.create(environment, with_pip=True)
    _pip(_python(environment), "install", str(wheel), *include, *more)
    # pip notes the wheel's path on this machine, which would be in the bill of materials and in the binaries.
    for origin in environment.rglob("chat_sidecar-*.dist-info/direct_url.json"):
        origin.unlink()
    return environment


def _write_bill_of_materials(environment: Path, build: Path, path: Path) -> None:
    """List what is shipped, with versions and licences, and nothing of the tools that list it."""
    tools = build / "bom"
    venv.create(tools, with_pip=True)
    _pip(_python(tools), "install", CYCLONEDX)
    _pip(_python(environment), "uninstall", "--yes", "pip", "setuptools")
    command = [
        str(_program(tools, "cyclonedx-py")),
        "environment",
        str(environment),
        "--output-file",
        str(path),
    ]
    subprocess.run(command, check=True)


def _pack_for_npm(program: Path, dist: Path) -> None:
    if not npm.is_here():
        _say(
            "no npm package of this platform: node and npm are not on PATH. "
            f"Where they are, run: make platform-package BINARY={program}"
        )
        return
    _say("packing and trying: npm package")
    package = npm.write_package(program, dist)
    npm.check_package(package)
    _say(f"wrote {package}")


def _python(environment: Path) -> Path:
    return _program(environment, "python")


def _program(environment: Path, name: str) -> Path:
    return environment / (f"Scripts/{name}.exe" if sys.platform == "win32" else f"bin/{name}")


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
