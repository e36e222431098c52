"""The command that upgrades each kind of installation, and what the doctor says of an older sidecar that runs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.cli import main
from sidecar.system import installation
from sidecar.system.installation import Upgrade, upgrade_command
from sidecar.system.processes import processes_with_file
from tests.support.spawner import Spawner

from .test_distribution import OURS, ROOT, install

WHEEL = {"url": "file:///home/ada/chat_sidecar-0.1.0-py3-none-any.whl", "archive_info": {}}
PIP = [sys.executable, "-m", "pip", "install", "--upgrade"]
UV = ["uv", "pip", "install", "--python", sys.executable, "--upgrade"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of packages, in an environment of its own."""
    standard = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *standard])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path / "site"


def put(site: Path, installer: str = "pip", origin: dict[str, object] | None = None) -> Path:
    folder = install(site, "chat-sidecar", "0.1.0", INSTALLER=f"{installer}\n", entry_points_txt=OURS)
    if origin:
        (folder / "direct_url.json").write_text(json.dumps(origin), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("installer", "receipt", "origin", "command"),
    [
        ("pip", None, None, [*PIP, "chat-sidecar"]),
        ("uv", None, None, [*UV, "chat-sidecar"]),
        ("pip", "pipx_metadata.json", None, ["pipx", "upgrade", "chat-sidecar"]),
        ("uv", "uv-receipt.toml", None, ["uv", "tool", "upgrade", "chat-sidecar"]),
        ("pip", None, WHEEL, [*PIP, installation.NEW_WHEEL]),
        ("pip", "pipx_metadata.json", WHEEL, ["pipx", "install", "--force", installation.NEW_WHEEL]),
        ("uv", "uv-receipt.toml", WHEEL, ["uv", "tool", "install", "--force", installation.NEW_WHEEL]),
        ("pip", None, {"url": "file:///home/my%20code", "dir_info": {}}, [*PIP, "/home/my code"]),
        (
            "pip",
            None,
            {"url": "https://host/sidecar", "vcs_info": {"vcs": "git", "commit_id": "c"}},
            [*PIP, "git+https://host/sidecar"],
        ),
        (
            "pip",
            None,
            {"url": "file:///home/code", "dir_info": {"editable": True}},
            ["git", "-C", "/home/code", "pull", "--ff-only"],
        ),
    ],
)
def test_each_kind_of_installation_has_its_command(
    site: Path, installer: str, receipt: str | None, origin: dict[str, object] | None, command: list[str]
) -> None:
    put(site, installer, origin)
    if receipt:
        (site.parent / receipt).touch()

    assert upgrade_command().command == command


@pytest.mark.usefixtures("site")
def test_source_that_is_not_installed_is_pulled() -> None:
    assert upgrade_command().command == ["git", "-C", str(ROOT), "pull", "--ff-only"]


@pytest.mark.usefixtures("site")
def test_a_frozen_program_is_upgraded_by_its_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    found = upgrade_command()

    assert (found.command, found.kind) == ([], "a program that contains Python")
    assert found.hint
    assert "update the app" in found.hint


def test_a_command_is_quoted_for_the_shell() -> None:
    assert Upgrade("pip", ["pip", "install", "/home/my code"]).line == "pip install '/home/my code'"


def test_stdout_has_the_command_alone(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(site)

    assert main(["upgrade"]) == 0

    said = capsys.readouterr()
    assert said.out == f"{Upgrade('', [*PIP, 'chat-sidecar']).line}\n"
    assert f"sidecar {__version__}, installed as pip" in said.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere open files of others cannot be seen")
def test_a_process_with_the_file_open_is_found_with_its_start(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w"):
        found = processes_with_file(str(path))

    assert list(found) == [os.getpid()]
    assert found[os.getpid()] < time.time()
    assert processes_with_file(str(path)) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere open files of others cannot be seen")
@pytest.mark.parametrize(("seconds", "code"), [(60, "running_outdated"), (-3600, "running")])
def test_the_doctor_finds_a_sidecar_that_is_older_than_the_installation(
    spawn: Spawner, tmp_path: Path, seconds: int, code: str
) -> None:
    site = tmp_path / "site"
    folder = put(site)
    sidecar = spawn(env={"PYTHONPATH": str(site)})
    sidecar.call("chat/open", chatId="c")
    installed = time.time() + seconds
    os.utime(folder, (installed, installed))

    checks = {check["name"]: check for check in sidecar.call("doctor/run")["checks"]}

    assert checks["running"]["code"] == code
    if code == "running_outdated":
        assert checks["running"]["message"].endswith(f"process {sidecar.pid}")
        assert checks["running"]["action"] == "Restart the app that started it"


def test_the_doctor_names_the_newer_version_that_is_installed(spawn: Spawner, tmp_path: Path) -> None:
    site = tmp_path / "site"
    sidecar = spawn(env={"PYTHONPATH": str(site)})
    install(site, "chat-sidecar", "99.10.0", entry_points_txt=OURS)

    checks = {check["name"]: check for check in sidecar.call("doctor/run")["checks"]}

    assert checks["running"]["message"] == f"This sidecar is {__version__}, and 99.10.0 is installed"
