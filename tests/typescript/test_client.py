"""The TypeScript client: killed at random, installed as the README says, measured."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.killing import kill_and_compare
from tests.support.spawner import Spawner

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "typescript"
LIMIT_S = 300

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_TYPESCRIPT"), reason="`make test-typescript-slow` builds the client first"
)


def test_fifty_kills_leave_the_transcript_that_the_journal_has(spawn: Spawner) -> None:
    seed = int(os.environ.get("SIDECAR_CRASH_SEED", "7"))

    assert kill_and_compare(spawn, ["node", str(PACKAGE / "test" / "recorder.mjs")], 50, seed) >= 40


def test_the_quick_start_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    page = (PACKAGE / "README.md").read_text("utf-8")
    section = page.partition("## Quick start")[2].partition("\n## ")[0]
    setup, run = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (program,) = re.findall(r"```ts\n(.*?)```", section, re.DOTALL)
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements-dev.txt", ".venv", "clients", "LICENSE"):
        (clone / name).symlink_to(ROOT / name)
    # Where packages come from is the machine's business; everything else of the tester's home is absent.
    registry = {"NPM_CONFIG_USERCONFIG": str(Path.home() / ".npmrc")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDECAR_MODEL": "echo:", **registry}

    def shell(script: str, folder: Path) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell(setup, clone)
    (clone / "my-app" / "chat.ts").write_text(program)
    said = shell(run, clone / "my-app")

    assert said.splitlines()[-1] == "Do not forget this"


def test_size_import_time_and_memory_are_printed(tmp_path: Path) -> None:
    packed = subprocess.run(
        ["npm", "pack", "--json", "--dry-run"], cwd=PACKAGE, capture_output=True, text=True, check=True
    )
    (facts,) = json.loads(packed.stdout)
    script = tmp_path / "measure.mjs"
    script.write_text(
        "const before = process.memoryUsage.rss(), start = performance.now();"
        f"await import({json.dumps((PACKAGE / 'dist/esm/index.js').as_uri())});"
        "console.log(JSON.stringify([performance.now() - start, process.memoryUsage.rss() - before]));"
    )
    runs = [
        json.loads(subprocess.run(["node", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    milliseconds, memory = (sorted(column)[2] for column in zip(*runs, strict=True))
    figures = {
        "packed kB": round(facts["size"] / 1000),
        "unpacked kB": round(facts["unpackedSize"] / 1000),
        "import ms": round(milliseconds),
        "import MB": round(memory / 1e6, 1),
    }
    sys.stderr.write(f"client: {json.dumps(figures)}\n")
    assert facts["unpackedSize"] < 2_000_000
    assert milliseconds < 2_000
    assert shutil.which("node")
