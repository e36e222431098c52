"""The log in a file, beside stderr."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

LOG = """
import logging, sys
from sidecar import logs
logs.start("info", sys.argv[1])
for number in range(100):
    logging.getLogger("x").info(f"both get line {number}")
"""


def test_a_log_file_is_as_well_as_stderr(tmp_path: Path) -> None:
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", LOG, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    # The process ended right after its last line: none is lost.
    assert "both get line 99" in path.read_text()
    assert "both get line 99" in done.stderr
    assert os.stat(path).st_mode & 0o077 == 0


def test_the_process_ends_although_nobody_reads_its_log(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        command = [sys.executable, "-c", LOG, str(tmp_path / "log")]
        assert subprocess.run(command, stderr=writer, timeout=60, check=False).returncode == 0
    finally:
        os.close(reader)
        os.close(writer)
