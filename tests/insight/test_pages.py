"""Every page in Debian's Chromium: with data full of injections, and with none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.insight.page import INJECTIONS, fill, opened
from tests.blackbox.work.workbench import Workbench
from tests.support.spawner import Spawner

LIMIT_S = 180
CHROMIUM = os.environ.get("SIDECAR_CHROMIUM", "/usr/bin/chromium")
PAINT_LIMIT_MS = 300

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_INSIGHT_DIR"), reason="`make test-insight` installs playwright-core from npm"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the screenshots go."""
    return Path(os.environ.get("SIDECAR_INSIGHT_SHOTS") or tmp_path / "shots")


def drive(spawn: Spawner, folder: Path, session: str = "", source: str = "") -> dict[str, Any]:
    with opened(spawn.environment()) as page:
        script = str(Path(__file__).with_name("drive.mjs"))
        done = subprocess.run(
            ["node", script, page.address, session, source, str(folder), CHROMIUM],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check(report: dict[str, Any]) -> None:
    assert {name: report[name] for name in ("errors", "contrast", "wide", "broken", "foreign")} == {
        "errors": [],
        "contrast": {},
        "wide": [],
        "broken": [],
        "foreign": [],
    }
    assert [each for each in report["keyboard"] if each[2] == "none"] == []
    assert {name: ms for name, ms in report["paints"].items() if ms > PAINT_LIMIT_MS} == {}


def test_every_page_shows_stored_text_as_text(spawn: Spawner, folder: Path) -> None:
    bench = Workbench(spawn)
    session = fill(bench)
    sources = bench.spawn().call("index/list", scope="all")["items"]
    source = next(each["id"] for each in sources if each["source"] == INJECTIONS[0])
    report = drive(spawn, folder / "full", session, f"data/{source}")
    check(report)
    assert INJECTIONS[0] in report["text"]["chats"]
    assert INJECTIONS[2] in report["text"]["chat"]
    assert all(each in report["text"]["knowledge"] for each in INJECTIONS)
    assert all(each in report["text"]["source"] for each in INJECTIONS)
    assert "<img src=x onerror=window.broken=1>" in report["text"]["rules"]
    assert "<b>bold<b>.txt" in report["text"]["patches"]
    assert INJECTIONS[0] in report["text"]["tools"]


def test_every_page_says_what_to_do_without_data(spawn: Spawner, folder: Path) -> None:
    report = drive(spawn, folder / "empty")
    check(report)
    assert "sidecar chat" in report["text"]["overview"]
    assert "sidecar chat" in report["text"]["chats"]
    assert "/index" in report["text"]["knowledge"]
