"""Makes a mutant of the program: a copy of its source with some words replaced. Says nothing of who catches it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
TAKEN = ("sidecar", "protocol", "clients", "tests", "benchmarks", "pyproject.toml")


@dataclass(frozen=True)
class Mutant:
    """`was` stands once in `file` and `becomes` something that breaks a promise, which `caught_by` are tests of."""

    name: str
    file: str
    was: str
    becomes: str
    caught_by: str
    needs_root: bool = False
    needs_strace: bool = False


def source(folder: Path, mutant: Mutant | None, *, whole: bool = True) -> Path:
    """A copy of the source, broken by `mutant`; without the tests when it is not `whole`."""
    place = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "transcripts", ".*")
    for name in TAKEN if whole else ("sidecar",):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, place / name)
    if mutant:
        path = place / mutant.file
        text = path.read_text("utf-8")
        assert text.count(mutant.was) == 1, f"{mutant.name}: {text.count(mutant.was)} places in {mutant.file}"
        path.write_text(text.replace(mutant.was, mutant.becomes), "utf-8")
    return place


def environment(place: Path) -> dict[str, str]:
    """In which Python takes the program from there."""
    parts = [place, place / "protocol", place / "clients" / "python"]
    return {"PYTHONPATH": os.pathsep.join(str(part) for part in parts if part.exists())}


def run(place: Path, tests: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the copy's own tests."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "-x", f"--basetemp={folder / 'runs'}", *tests.split()],
        cwd=place,
        env={**os.environ, **environment(place)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
