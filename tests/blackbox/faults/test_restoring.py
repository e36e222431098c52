"""A restore that is killed at any of its renames leaves the database that was there, or the one that it brought."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.blackbox.cli.shell import Shell
from tests.blackbox.faults.tracing import unable
from tests.support.spawner import Spawner

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(unable()), reason=unable() or "-")]

RENAMES = 5
"""The copy's, the old database's, its log's and its shared index's, and the one that names the new."""


def test_a_restore_that_is_killed_loses_neither(spawn: Spawner) -> None:
    shell = Shell(spawn.folder)
    shell.output("chat", "--chat", "old", "Hello")
    assert shell.run("backup", "kept.db").returncode == 0
    ended = []
    for when in range(1, RENAMES + 1):
        sidecar = spawn()
        sidecar.run("said later", chatId="new")
        sidecar.kill()  # so that there is a log to put aside
        kill = ["strace", "-f", "-o", "/dev/null", "-e", f"inject=rename:signal=KILL:when={when}"]
        command = [*kill, sys.executable, "-m", "sidecar", "restore", "kept.db"]
        restored = subprocess.run(command, env=shell.env, cwd=shell.folder, capture_output=True, check=False)
        ended.append(restored.returncode)
        found = sorted(line.split()[0] for line in shell.output("chats").splitlines()[1:])
        assert found in (["new", "old"], ["old"]), when
        assert shell.run("verify").returncode == 0
    assert ended[0] == -signal.SIGKILL
    assert ended[-1] == 0, "there are more renames than were tried"
