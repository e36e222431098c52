"""Hosts in a project of the test's own; at the end every server has exited and left no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.spawner import Spawner

from .host import LEGACY, Host

StartHost = Callable[..., Host]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my projéct"
    folder.mkdir()
    (folder / "notes.txt").write_text("The zebra crosses at noon.\n")
    return folder


@pytest.fixture
def start_host(tmp_path: Path, project: Path) -> Iterator[StartHost]:
    """Call it to start a server; `env` adds variables, `project` names another folder."""
    spawner = Spawner(tmp_path)
    hosts: list[Host] = []

    def start(*, env: dict[str, str] | None = None, project: Path = project, **more: Any) -> Host:
        host = Host(spawner.environment() | (env or {}), project, **more)
        hosts.append(host)
        if host.version != "2026-07-28":
            host.initialize()
        return host

    yield start
    codes = [host.close() for host in hosts if host.process.poll() is None]
    left = processes.pids_with_mark(spawner.mark)
    assert (set(codes), left) in ((set(), set()), ({0}, set()))


@pytest.fixture
def host(start_host: StartHost) -> Host:
    return start_host()


@pytest.fixture
def legacy_host(start_host: StartHost) -> Host:
    return start_host(version=LEGACY)
