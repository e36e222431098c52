"""What an agent is told when storage fails: a result with the reason. The server lives on, and ends with the agent."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.blackbox.faults.disks import fill, mounted, unable
from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner

from .conftest import StartHost

ECHO = {"language": "shell", "code": "echo stored"}

HOST = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "sidecar", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
print(server.stdout.readline().decode(), flush=True)
sys.stdin.buffer.read()
"""
"""An agent that starts a server, brings it one request, and stays."""


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program holds the database."""
    with sqlite3.connect(database, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")
    other.close()


def test_a_database_that_another_program_holds_is_a_result_with_the_reason(
    start_host: StartHost, tmp_path: Path
) -> None:
    config = tmp_path / "home/.config/sidecar/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[store]\nbusy_timeout = 1\n")
    host = start_host()
    host.text("run_code", **ECHO)

    with locked(tmp_path / "data/sidecar.db"):
        reason = host.error("run_code", **ECHO)
        listed = host.request("tools/list")["tools"]

    assert "busy" in reason.lower() or "locked" in reason.lower()
    assert len(listed) == 12
    assert "stored" in host.text("run_code", **ECHO)


def test_a_damaged_database_is_repaired_or_named_and_the_server_lives_on(
    start_host: StartHost, tmp_path: Path
) -> None:
    first = start_host()
    first.text("index_path", path="notes.txt")
    first.close()
    database = tmp_path / "data/sidecar.db"
    with database.open("r+b") as file:
        file.seek(0)
        file.write(b"\xff" * 8192)

    host = start_host()
    result = host.call("run_code", **ECHO)

    assert "stored" in result["content"][0]["text"] or result.get("isError")
    assert len(host.request("tools/list")["tools"]) == 12
    assert host.request("ping") == {"resultType": "complete"}


@pytest.mark.slow
@pytest.mark.skipif(bool(unable()), reason=unable() or "-")
def test_a_full_disk_is_a_result_with_the_reason_until_there_is_room(
    start_host: StartHost, tmp_path: Path
) -> None:
    with mounted(tmp_path, "tmpfs") as disk:
        host = start_host(env={"SIDECAR_DATA_DIR": str(disk / "data")})
        host.text("run_code", **ECHO)
        fill(disk / "ballast")
        noise = {"language": "python", "code": "import os; print(os.urandom(300_000).hex())"}
        reasons = [result for _ in range(8) if (result := host.call("run_code", **noise)).get("isError")]
        listed = host.request("tools/list")["tools"]
        (disk / "ballast").unlink()
        again = host.text("run_code", **ECHO)
        host.close()

    assert reasons
    assert "disk" in reasons[-1]["content"][0]["text"]
    assert len(listed) == 12
    assert "stored" in again


def test_each_of_many_servers_ends_with_its_agent(tmp_path: Path, project: Path) -> None:
    spawner = Spawner(tmp_path)
    request = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":'
        b'{"language":"shell","code":"echo stored"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}\n'
    )
    agents = [
        subprocess.Popen(
            [sys.executable, "-c", HOST],
            env=spawner.environment(),
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    for agent in agents:
        assert agent.stdin is not None
        agent.stdin.write(request)
        agent.stdin.flush()
    answers = [agent.stdout.readline() for agent in agents if agent.stdout is not None]
    servers = processes.pids_with_mark(spawner.mark) - {agent.pid for agent in agents}
    for agent in agents:
        os.kill(agent.pid, signal.SIGKILL)
        agent.communicate()

    assert all(b"stored" in answer for answer in answers)
    assert len(servers) >= len(agents)
    assert processes.poll_until(lambda: not processes.pids_with_mark(spawner.mark), PATIENCE_S)
