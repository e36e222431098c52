"""A user and a project of the test's own, so that no test sees the files of whoever runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.settings import files


class Places:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.user = root / "config" / "sidecar" / "config.toml"
        self.data = root / "data"
        self.project = root / "project"
        self.project.mkdir()
        self.project_file = self.project / ".sidecar" / "config.toml"
        self.other = root / "other.toml"

    def put(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    found = Places(tmp_path)
    monkeypatch.setattr(files, "user_file", lambda: str(found.user))
    monkeypatch.setattr(files, "default_data_dir", lambda: str(found.data))
    return found
