"""Runs one agent in a network of its own that has only loopback: `unshare -n python -m tests.platforms.run NAME DIR`.

Prints what happened as JSON: what the agent printed in two sessions, and what of ours reached its model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from .agents import AGENTS, Agent

AGENT_S = 120

FROM_TOOL = "exit code 0; in the sandbox"
"""In the result of `run_code`."""

DENIED = "make the same call again"
"""In the reason that our hook gives for a denied call."""

MEMORY = "Sidecar remembers earlier sessions"
"""In the text for a new session."""

BIG_FILE = 200_000

_KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV")


def main(name: str, folder: Path) -> None:
    agent, home, project = AGENTS[name], folder / "home", folder / "my project"
    home.mkdir(parents=True)
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    big = project / "big.txt"
    big.write_text("hay\n" * (BIG_FILE // 4))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
    environment |= {"HOME": str(home), "TERM": "dumb"}
    sidecar = [sys.executable, "-m", "sidecar"]
    subprocess.run(
        [*sidecar, "connect", name], env=environment, cwd=project, check=True, stdout=subprocess.DEVNULL
    )
    command = [*sidecar, "fake-provider", "--prefix", agent.models]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as provider:
        try:
            assert provider.stdout is not None
            url = provider.stdout.readline().split()[0]
            agent.settle(url, home, project)
            environment |= agent.environment(url, home)
            first = _run_agent(agent, agent.prompt, environment, project)
            _store_events([*sidecar, "mcp"], environment, project)
            before = len(_requests(url))
            second = _run_agent(agent, agent.flooding_prompt(big), environment, project)
            requests = _requests(url)
        finally:
            provider.terminate()
    report = {
        "first": first,
        "second": second,
        "calls": any(FROM_TOOL in request for request in requests[:before]),
        "denied": any(DENIED in request for request in requests[before:]),
        "remembers": any(MEMORY in request for request in requests[before:]),
    }
    sys.stdout.write(json.dumps(report))


def _run_agent(agent: Agent, prompt: str, environment: dict[str, str], project: Path) -> dict[str, Any]:
    done = subprocess.run(
        agent.command(prompt),
        env=environment,
        cwd=project,
        input=prompt if agent.prompt_by_stdin else "",
        capture_output=True,
        text=True,
        timeout=AGENT_S,
        check=False,
    )
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr[-4000:]}


def _store_events(command: list[str], environment: dict[str, str], project: Path) -> None:
    """Have an MCP server store what the hooks have left: any call does."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "stats", "arguments": {}, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with subprocess.Popen(
        command, env=environment, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        server.stdout.readline()
        server.stdin.close()


def _requests(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/_fake/requests", timeout=10) as answer:
        return [json.dumps(request) for request in json.load(answer)]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
