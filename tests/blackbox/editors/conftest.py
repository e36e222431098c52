"""Editors in a project of the test's own; at the end all have exited, and every frame kept the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.spawner import Spawner

from .editor import Editor

Start = Callable[..., Editor]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my projéct"
    folder.mkdir()
    (folder / "notes.txt").write_text("The zebra crosses at noon.\n")
    return folder


@pytest.fixture
def start(tmp_path: Path, project: Path) -> Iterator[Start]:
    """Call it to start a sidecar for an editor; `model` and `env` are as for the spawner."""
    spawner = Spawner(tmp_path)
    editors: list[Editor] = []

    def begin(*, model: str = "echo:", env: dict[str, str] | None = None, **more: Any) -> Editor:
        editor = Editor(spawner.environment(model=model) | (env or {}), project, **more)
        editors.append(editor)
        return editor

    yield begin
    codes = {editor.close() for editor in editors if editor.process.poll() is None}
    problems = [problem for editor in editors for problem in editor.problems]
    left = processes.pids_with_mark(spawner.mark)
    assert (problems, codes - {0}, left) == ([], set(), set())


@pytest.fixture
def editor(start: Start) -> Editor:
    return start()
