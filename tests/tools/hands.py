"""Real hands for a tool's test: a real workspace, and a record of what the tool showed, planned and asked.

Scripted is only the other side: what a person answers, what an editor has not saved, what the model has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread

from sidecar.tools.base import Answer, Edit, Library, Need, Outcome, Tool, Verdict, Wrong
from sidecar.workspace.paths import Workspace

T = TypeVar("T")


class OpenHands:
    """`answers` are given to `ask` one after the other, then None: nobody can be asked. `unsaved_texts` and
    `seen_hashes` go by the path as the workspace shows it; `app_outcomes` are the app's answers by tool. Leave on the
    way is given as `verdicts` say, then always."""

    def __init__(self, workspace: Workspace, call_key: str = "test-call") -> None:
        self._workspace = workspace
        self._call_key = call_key
        self.answers: list[Answer] = []
        self.unsaved_texts: dict[str, str] = {}
        self.seen_hashes: dict[str, str] = {}
        self.app_outcomes: dict[str, Outcome] = {}
        self.app_calls: list[tuple[str, dict[str, Any], float]] = []
        self.shown: list[str] = []
        self.planned: list[list[dict[str, Any]]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.needs: list[Need] = []
        self.verdicts: list[Verdict] = []
        self.refused: dict[int, str] = {}

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def library(self) -> Library:
        raise Wrong("The index is switched off.")

    @property
    def call_key(self) -> str:
        return self._call_key

    async def leave(self, need: Need) -> Verdict:
        self.needs.append(need)
        return self.verdicts.pop(0) if self.verdicts else Verdict(True)

    def seen(self, path: str) -> str | None:
        return self.seen_hashes.get(path)

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)

    async def show(self, text: str) -> None:
        self.shown.append(text)

    async def ask(self, message: str, schema: dict[str, Any]) -> Answer | None:
        self.asked.append((message, schema))
        return self.answers.pop(0) if self.answers else None

    async def plan(self, entries: list[dict[str, Any]]) -> None:
        self.planned.append(entries)

    async def call_app(self, name: str, arguments: dict[str, Any], timeout_s: float) -> Outcome:
        self.app_calls.append((name, arguments, timeout_s))
        return self.app_outcomes.get(name) or Outcome(f"The app has no tool {name}.", failed=True)

    async def unsaved(self, path: str) -> str | None:
        return self.unsaved_texts.get(path)


async def carry_out(tool: Tool, input: dict[str, Any], hands: OpenHands) -> Outcome:
    """A call from the plan to the outcome, as if leave was given: the edits are written, what was seen is kept."""
    ready = await tool.prepare(input, hands)
    for edit in ready.need.edits:
        _write(hands.workspace.root, edit)
    outcome = await ready.run()
    hands.seen_hashes.update(outcome.seen)
    return outcome


def _write(root: str, edit: Edit) -> None:
    path = Path(os.path.join(root, edit.path))
    assert (path.read_bytes() if path.exists() else None) == edit.before
    if edit.after is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(edit.after)
