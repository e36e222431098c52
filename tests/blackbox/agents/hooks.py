"""Runs `sidecar hook` as agents do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.wire import Json


class HookRunner:
    """Runs hooks in an environment of the test; `variables` are added to it, as an agent would."""

    def __init__(self, environment: dict[str, str], project: Path) -> None:
        self.environment = environment
        self.project = project

    def __call__(self, platform: str, event: str, raw: bytes | None = None, **payload: Any) -> Any:
        """Run the hook of a platform for an event; return its answer, None when it gives none."""
        payload = {"session_id": "s1", "cwd": str(self.project), **payload}
        done = self.run(platform, event, json.dumps(payload).encode() if raw is None else raw)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def run(
        self, platform: str, event: str, raw: bytes, **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "sidecar", "hook", "--platform", platform, event],
            input=raw,
            env=self.environment | variables,
            cwd=self.project,
            capture_output=True,
            check=False,
        )


def recorded(platform: str, project: Path, home: Path) -> list[tuple[str, Json]]:
    """What the agent itself has sent to its hooks in a session, which was compacted at its end."""
    path = Path(__file__).parent / "recorded" / f"{platform}.json"
    text = path.read_text("utf-8").replace("{PROJECT}", str(project)).replace("{HOME}", str(home))
    return [(one["event"], one["payload"]) for one in json.loads(text)["events"]]


def waiting_events(data_dir: Path) -> list[Json]:
    """The events that wait to be stored, oldest first."""
    folder = data_dir / "agents/events"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [json.loads((folder / name).read_text("utf-8")) for name in names if name.endswith(".json")]
