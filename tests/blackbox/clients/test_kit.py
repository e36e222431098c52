"""`sidecar-conformance` as a command: it passes the program, fails what is none, and plays a transcript."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow

KIT = Path(__file__).parents[3] / "clients" / "conformance"
HELLO = {
    "jsonrpc": "2.0",
    "id": 9,
    "method": "initialize",
    "params": {"protocol": "sidecar", "versions": [1]},
}


def run_kit(*words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar_conformance", *words],
        env={**os.environ, "PYTHONPATH": str(KIT)},
        input=said,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )


def test_the_program_passes() -> None:
    done = run_kit("--only", "turns", "--", sys.executable, "-m", "sidecar", "serve")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok   turns" in done.stdout


def test_a_program_that_is_no_sidecar_fails() -> None:
    done = run_kit("--only", "identity", "--fail-fast", "--", sys.executable, "-c", "")
    assert done.returncode == 1
    assert "FAIL identity" in done.stdout


def test_a_wrong_command_line_is_refused_by_name() -> None:
    refused = [run_kit(), run_kit("--", "/no/such/program"), run_kit("--only", "x", "--", sys.executable)]
    assert [done.returncode for done in refused] == [2, 2, 2]
    assert "/no/such/program" in refused[1].stderr
    assert "identity" in refused[2].stderr


def test_a_transcript_is_played_and_the_first_difference_is_said() -> None:
    wrong = {"jsonrpc": "2.0", "id": 10, "method": "chat/open", "params": {"chatId": "tab-8"}}
    done = run_kit("--play", "01-hello-and-stream", said=f"{json.dumps(HELLO)}\n{json.dumps(wrong)}\n")
    assert done.returncode == 1
    assert json.loads(done.stdout)["id"] == 9
    assert '"tab-8"' in done.stderr
    assert '"tab-7"' in done.stderr


def test_a_client_that_keeps_to_the_transcript_ends_with_0() -> None:
    goodbye = {"jsonrpc": "2.0", "id": 10, "method": "shutdown", "params": {}}
    leave = {"jsonrpc": "2.0", "method": "exit", "params": {}}
    said = "".join(f"{json.dumps(message)}\n" for message in (HELLO, goodbye, leave))
    done = run_kit("--play", "01-hello-and-stream", said=said)
    assert (done.returncode, done.stderr) == (0, "")
