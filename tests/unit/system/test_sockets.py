"""Sockets are covered wherever they lie: no server outside does anything for a command in the sandbox."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sidecar.policy.protected import is_watched
from sidecar.system.sandbox import SandboxView
from sidecar.system.survey import survey
from tests.unit.system.sandboxes import ORDINARY, PATH, as_ordinary, folder_of, run_boxed, with_own_mounts

CONNECT = """
python3 - {path} <<'END'
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print("connected")
except OSError:
    print("refused")
END
"""
ENVIRON = {"PATH": PATH, "HOME": "/nonexistent"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p").mkdir()
    return tmp_path / "p"


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(servers: ExitStack, path: str, *, at: str | None = None) -> None:
    """Listen at a path; with `at`, by a relative name in that folder."""
    server = servers.enter_context(socket.socket(socket.AF_UNIX))
    before = os.getcwd()
    try:
        os.chdir(at or before)
        server.bind(path)
    finally:
        os.chdir(before)
    server.listen()


def serve_in(servers: ExitStack, folder: str, name: str) -> None:
    """A daemon that works in a folder and listens at a relative name there."""
    script = "import socket, sys; s = socket.socket(1); s.bind(sys.argv[1]); s.listen()"
    script += "; print('up', flush=True); input()"
    command = ["python3", "-c", script, name]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    servers.enter_context(process)
    servers.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"


def connect(path: str, project: Path, **around: tuple[str, ...]) -> str:
    found = survey(str(project), is_watched)
    view = SandboxView(sockets=found.sockets, repositories=found.repositories)
    return run_boxed(CONNECT.format(path=path), project, ENVIRON, view=view, **around)


def test_a_server_of_the_command_itself_can_be_reached(project: Path) -> None:
    script = (
        "python3 -c \"import socket; s = socket.socket(1); s.bind('s'); s.listen(); import os; os.system('''"
    )
    assert "connected" in run_boxed(f"{script}{CONNECT.format(path='s')}''')\"", project, ENVIRON)


@pytest.mark.parametrize("name", ["s", "deep/er/s", ".git/s", "with space"])
def test_sockets_in_the_project_are_covered(project: Path, servers: ExitStack, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    serve(servers, str(project / name))
    assert connect(f"'{name}'", project) == "refused\n"


def test_a_socket_with_a_relative_name_is_covered(project: Path, servers: ExitStack) -> None:
    serve(servers, "relative", at=str(project))
    assert connect("relative", project) == "refused\n"


def test_a_hard_link_to_a_socket_is_covered(project: Path, servers: ExitStack, tmp_path: Path) -> None:
    serve(servers, str(tmp_path / "s"))
    os.link(tmp_path / "s", project / "link")
    assert connect("link", project) == "refused\n"


def test_sockets_of_further_folders_are_covered(project: Path, servers: ExitStack, tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    serve(servers, str(tmp_path / "extra/s"))
    assert connect(str(tmp_path / "extra/s"), project, writable=(str(tmp_path / "extra"),)) == "refused\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("parent", ["/var/lib", "/opt", "/srv", "/mnt"])
def test_sockets_of_services_are_covered(project: Path, servers: ExitStack, parent: str) -> None:
    def work() -> str:
        os.mkdir(f"{parent}/service")
        serve(servers, f"{parent}/service/s")
        serve_in(servers, f"{parent}/service", "t")
        said = [connect(f"{parent}/service/{name}", project) for name in "st"]
        servers.close()
        return "".join(said)

    assert with_own_mounts(parent, work) == "refused\n" * 2


def test_abstract_sockets_are_out_of_reach(project: Path, servers: ExitStack) -> None:
    serve(servers, f"\0sidecar-test-{os.getpid()}")
    script = CONNECT.format(path=f"@sidecar-test-{os.getpid()}").replace(
        "sys.argv[1]", "chr(0) + sys.argv[1][1:]"
    )
    assert run_boxed(script, project, ENVIRON) == "refused\n"


def test_an_ordinary_user_finds_none_either(servers: ExitStack) -> None:
    folder = servers.enter_context(folder_of(ORDINARY))
    serve(servers, str(folder / "project/s"))
    os.chmod(folder / "project/s", 0o777)
    assert as_ordinary(lambda: connect("s", folder / "project")) == "refused\n"
