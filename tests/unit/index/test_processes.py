"""Several processes on one database: no error reaches anybody, and nothing is lost or entered twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.store.engine.sqlite import connect

PROCESSES = 8
TEXTS = 4
SECONDS = 120


@pytest.mark.slow
def test_eight_processes_index_and_search_one_database(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [sys.executable, "-m", "tests.unit.index.worker", str(folder)]
    running = [
        subprocess.Popen(
            [*command, str(number), str(TEXTS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    said = [process.communicate(timeout=SECONDS) for process in running]
    assert said == [(f"{TEXTS} 1\n", "")] * PROCESSES
    db = connect(folder / "sidecar.db")
    sources = db.execute("SELECT count(*), sum(pending), sum(chunks) FROM index_sources").fetchone()
    rows = db.execute("SELECT count(*) FROM index_chunks").fetchone()
    db.execute("INSERT INTO index_letters (index_letters) VALUES ('integrity-check')")
    db.close()
    assert (sources[:2], sources[2]) == ((PROCESSES * (TEXTS - 1), 0), rows[0])
