"""A workbench whose project and user have hooks: real scripts, which leave a line in a log each time that they run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.blackbox.work.workbench import Json, Workbench
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner


class HookBench(Workbench):
    """`hooks.json` is the project's; `trust` lets it run."""

    def __init__(self, spawn: Spawner) -> None:
        super().__init__(spawn)
        self.log = spawn.folder / "ran.log"

    def hook(self, event: str, command: str, matcher: str | None = None, **more: Any) -> None:
        """Add a hook to the project's file."""
        self.add(self.project / ".sidecar" / "hooks.json", event, command, matcher, **more)

    def add(self, path: Path, event: str, command: str, matcher: str | None = None, **more: Any) -> None:
        whole: Json = json.loads(path.read_text()) if path.exists() else {"hooks": {}}
        group: Json = {"hooks": [{"type": "command", "command": command, **more}]}
        if matcher is not None:
            group["matcher"] = matcher
        whole["hooks"].setdefault(event, []).append(group)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole))

    def saying(self, answer: Json | str, code: int = 0) -> str:
        """A command that logs, reads what it is given, and says this."""
        said = answer if isinstance(answer, str) else json.dumps(answer)
        path = self.spawn.folder / f"answer-{abs(hash((said, code)))}"
        path.write_text(said)
        given, stream = self.spawn.folder / "given.jsonl", ">&2" if code == 2 else ""
        keep = f"given=$(cat); printf '%s\\n' \"$given\" >> {given}"  # in one write: hooks run side by side
        return f"{keep}; echo ran >> {self.log}; cat {path} {stream}; exit {code}"

    def runs(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def given(self) -> list[Json]:
        """What hooks were given, in the order in which they read it."""
        path = self.spawn.folder / "given.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []

    def trusting(self, *replies: list[Any], mode: str | None = "auto", **hello: Any) -> Sidecar:
        """As `start`, in a project that is trusted."""
        sidecar = self.start(*replies, mode=mode, **hello)
        sidecar.call("project/trust", path=str(self.project), trusted=True)
        return sidecar


def ran(sidecar: Sidecar, session: str) -> list[Json]:
    return [event["data"] for event in sidecar.events(session, "hook.ran")]


def specific(event: str = "PreToolUse", **fields: Any) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
