"""A tool context for tests: a real workspace, and a record of what the tool showed, planned and asked.

Scripted is only the other side: what a person answers, what an editor has not saved, what the model has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
import msgspec

from sidecar.model import JsonObject
from sidecar.policy.read_rules import ReadRules
from sidecar.policy.rules import Rule
from sidecar.tools.base import (
    Edit,
    Intent,
    OutputLibrary,
    Permission,
    PlanEntry,
    Tool,
    ToolError,
    ToolInput,
    ToolOutcome,
    UserAnswer,
)
from sidecar.workspace.names import RealNames
from sidecar.workspace.paths import ReadFilter, Workspace

T = TypeVar("T")


class FolderContext:
    """`answers` are given to `ask` one after the other, then None: nobody can be asked. `unsaved_texts` and
    `seen_hashes` go by the path as the workspace shows it; `app_outcomes` are the app's answers by tool. Leave on the
    way is given as `verdicts` say, then always."""

    def __init__(self, workspace: Workspace, call_key: str = "test-call") -> None:
        self._workspace = workspace
        self._call_key = call_key
        self.answers: list[UserAnswer] = []
        self.unsaved_texts: dict[str, str] = {}
        self.seen_hashes: dict[str, str] = {}
        self.app_outcomes: dict[str, ToolOutcome] = {}
        self.app_calls: list[tuple[str, dict[str, Any], float]] = []
        self.shown: list[str] = []
        self.planned: list[list[dict[str, Any]]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.needs: list[Intent] = []
        self.verdicts: list[Permission] = []
        self.refused: dict[int, str] = {}
        self.rules: list[Rule] = []

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def library(self) -> OutputLibrary:
        raise ToolError("The index is switched off.")

    @property
    def call_key(self) -> str:
        return self._call_key

    async def request_permission(self, intent: Intent) -> Permission:
        self.needs.append(intent)
        return self.verdicts.pop(0) if self.verdicts else Permission(True)

    async def read_filter(self, granted: str | None = None) -> ReadFilter:
        return ReadRules(self.rules, "ask", RealNames(self._workspace), granted).skip_reason

    def seen(self, path: str) -> str | None:
        return self.seen_hashes.get(path)

    async def block(self, function: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)

    async def show(self, text: str) -> None:
        self.shown.append(text)

    async def ask(self, message: str, schema: dict[str, Any]) -> UserAnswer | None:
        self.asked.append((message, schema))
        return self.answers.pop(0) if self.answers else None

    async def plan(self, entries: list[PlanEntry]) -> None:
        self.planned.append(msgspec.to_builtins(entries))

    async def call_app(self, name: str, arguments: dict[str, Any], timeout_s: float) -> ToolOutcome:
        self.app_calls.append((name, arguments, timeout_s))
        return self.app_outcomes.get(name) or ToolOutcome(f"The app has no tool {name}.", failed=True)

    writes_buffers = False
    hidden_files: Sequence[str] = ()

    async def unsaved_text(self, path: str) -> str | None:
        return self.unsaved_texts.get(path)


async def carry_out(tool: Tool, input: dict[str, Any], context: FolderContext) -> ToolOutcome:
    """A call from the plan to the outcome, as if leave was given: the edits are written, what was seen is kept."""
    ready = await tool.prepare(ToolInput(input), context)
    for edit in ready.intent.edits:
        _write(context.workspace.root, edit)
    outcome = await ready.run()
    context.seen_hashes.update(outcome.seen)
    return outcome


def _write(root: str, edit: Edit) -> None:
    path = Path(os.path.join(root, edit.path))
    assert (path.read_bytes() if path.exists() else None) == edit.before
    if edit.after is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(edit.after)


def properties_of(schema: JsonObject) -> dict[str, Any]:
    """The arguments of a tool, by name."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties
