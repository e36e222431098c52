"""A project on disk for the edit tools' tests."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sidecar.tools.base import Tool, ToolError, ToolInput, ToolOutcome
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out


class Project:
    """A folder, and a tool context that has seen what was put into it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.context = FolderContext(Workspace(str(folder)))

    def put(self, path: str, data: bytes, *, seen: bool = True) -> None:
        (self.folder / path).write_bytes(data)
        if seen:
            self.context.seen_hashes[path] = sha256(data).hexdigest()

    def bytes(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    async def call(self, tool: Tool, **input: Any) -> ToolOutcome:
        return await carry_out(tool, input, self.context)

    async def problem(self, tool: Tool, **input: Any) -> str:
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        with pytest.raises(ToolError) as wrong:
            await tool.prepare(ToolInput(input), self.context)
        assert before == {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        return str(wrong.value)
