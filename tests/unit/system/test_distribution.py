"""Which distributions claim the names `sidecar`, and what the doctor says when one of them is not ours."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.model.checks import Check
from sidecar.model.failures import Failure
from sidecar.server import doctor
from sidecar.settings import load
from sidecar.system import distribution
from sidecar.system.distribution import Claim, find_claims, install_command
from tests.support.spawner import Spawner

ROOT = Path(__file__).parents[3]
OURS = "[console_scripts]\nsidecar = sidecar.__main__:main\n"


def install(site: Path, name: str, version: str, **files: str) -> Path:
    """Metadata as pip writes it. `RECORD="…"` and others are files beside METADATA; `_` stands for a dot."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    for file, text in files.items():
        (folder / file.replace("_txt", ".txt")).write_text(text, "utf-8")
    return folder


def claims_in(site: Path) -> list[Claim]:
    return find_claims([str(site)])


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("sidecar", {"RECORD": "sidecar/__init__.py,,\nsidecar/widget.py,,\n"}),
        ("Sidecar", {}),
        ("sidecar", {"top_level_txt": "sidecar\n"}),
        ("kube-tools", {"RECORD": "kube_tools/__init__.py,,\nsidecar/__init__.py,,\n"}),
        ("other-client", {"RECORD": "sidecar_client/__init__.py,,\n"}),
        ("other-protocol", {"top_level_txt": "zebra\nsidecar_protocol\n"}),
        ("runner", {"entry_points_txt": "[console_scripts]\nrun = r:main\nsidecar=runner.cli:main\n"}),
        ("sidecar", {"entry_points_txt": "[console_scripts]\nsidecar = sidecar.server.server:run\n"}),
    ],
)
def test_another_project_with_one_of_our_names_is_found(
    tmp_path: Path, name: str, files: dict[str, str]
) -> None:
    install(tmp_path, name, "0.7.0", **files)

    assert claims_in(tmp_path) == [Claim(name.lower(), "0.7.0", is_ours=False, in_our_folder=False)]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("sidecars", {"RECORD": "sidecars/__init__.py,,\n"}),
        ("jupyter-sidecar-proxy", {"RECORD": "sidecar_proxy/__init__.py,,\n"}),
        ("docs", {"RECORD": "docs/sidecar/__init__.py,,\n"}),
        ("agent", {"entry_points_txt": "[console_scripts]\nsidecar-agent = agent:main\n"}),
        ("photos", {"top_level_txt": "photos\nsidecar_files\n"}),
        ("plain", {}),
    ],
)
def test_a_project_with_a_similar_name_is_not(tmp_path: Path, name: str, files: dict[str, str]) -> None:
    install(tmp_path, name, "1.0", **files)

    assert claims_in(tmp_path) == []


@pytest.mark.parametrize("name", ["chat-sidecar", "chat_sidecar", "Chat.Sidecar", "sidecar"])
def test_ours_is_known_under_every_spelling_and_its_former_name(tmp_path: Path, name: str) -> None:
    install(tmp_path, name, "0.1.0", entry_points_txt=OURS)

    assert [claim.is_ours for claim in claims_in(tmp_path)] == [True]


def test_metadata_without_a_name_is_passed_over(tmp_path: Path) -> None:
    folder = install(tmp_path, "sidecar", "0.7.0", RECORD="sidecar/__init__.py,,\n")
    (folder / "METADATA").unlink()

    assert claims_in(tmp_path) == []


def test_a_distribution_in_the_folder_that_we_run_from_shares_our_files(tmp_path: Path) -> None:
    (tmp_path / "sidecar").symlink_to(ROOT / "sidecar")
    install(tmp_path, "sidecar", "0.7.0", RECORD="sidecar/__init__.py,,\n")

    assert [claim.in_our_folder for claim in claims_in(tmp_path)] == [True]


async def check(site: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.setattr(sys, "path", [str(site)])
    checks = await doctor.examine(Failure("storage", "not here"), load(environ={}))
    return next(found for found in checks if found.name == "distribution")


@pytest.mark.parametrize(
    ("installed", "status", "code"),
    [
        ([], "ok", "distribution_none"),
        ([("chat-sidecar", "0.1.0", OURS)], "ok", "distribution"),
        ([("sidecar", "0.1.0", OURS)], "warn", "distribution_former_name"),
        ([("chat-sidecar", "0.2.0", OURS), ("sidecar", "0.1.0", OURS)], "warn", "distribution_former_name"),
        ([("chat-sidecar", "0.1.0", OURS), ("sidecar", "0.7.0", "")], "warn", "distribution_foreign"),
        ([("sidecar", "0.7.0", "")], "warn", "distribution_foreign"),
    ],
)
async def test_the_doctor_weighs_what_is_installed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    installed: list[tuple[str, str, str]],
    status: str,
    code: str,
) -> None:
    for name, version, entry_points in installed:
        install(tmp_path, name, version, entry_points_txt=entry_points)

    found = await check(tmp_path, monkeypatch)

    assert (found.status, found.code) == (status, code)


async def test_a_project_that_can_have_replaced_our_files_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sidecar").symlink_to(ROOT / "sidecar")
    install(tmp_path, "sidecar", "0.7.0", RECORD="sidecar/__init__.py,,\n")

    assert await check(tmp_path, monkeypatch) == Check(
        "distribution",
        "fail",
        "distribution_foreign",
        "`sidecar` 0.7.0 is another project that also provides `sidecar`. It can have replaced our files",
        "Run `pip uninstall sidecar`, then `pip install --force-reinstall --no-deps chat-sidecar`",
    )


def test_a_running_sidecar_names_the_wrong_one_and_the_remedy(spawn: Spawner, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "sidecar", "0.7.0", RECORD="sidecar/__init__.py,,\n")
    sidecar = spawn(env={"PYTHONPATH": str(site)})

    checks = {check["name"]: check for check in sidecar.call("doctor/run")["checks"]}

    assert checks["distribution"]["code"] == "distribution_foreign"
    assert "`sidecar` 0.7.0 is another project" in checks["distribution"]["message"]
    assert "pip uninstall sidecar" in checks["distribution"]["action"]


def test_the_names_are_those_of_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert (project["name"], project["version"]) == (distribution.NAME, __version__)
    assert project["scripts"] == {distribution.COMMAND: distribution.ENTRY_POINT}
    assert install_command("local") == "pip install 'chat-sidecar[local]'"
    assert {"local", "keyring"} <= set(project["optional-dependencies"])


def test_nothing_advises_to_install_the_other_project() -> None:
    """Advice to `pip install sidecar`, with or without an extra, would install the widget over our files."""
    wrong = re.compile(r"""pip install[^\n`]*[\s'"]sidecar(?=[\s'"`\[=<>]|$)|['"]sidecar\[""")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("clients/**/*.md"), ROOT / "Makefile"]
    sources = [path for name in ("sidecar", "protocol", "clients") for path in (ROOT / name).rglob("*.py")]

    said = [path.name for path in [*pages, *sources] if wrong.search(path.read_text("utf-8"))]

    assert said == []
    assert wrong.search("pip install 'sidecar[local]'")
    assert wrong.search("pip install --upgrade sidecar")
