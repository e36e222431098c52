"""Fixtures of mounted servers: attempts follow each other quickly, so that no test waits for a back-off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.tools.mcp import connection
from tests.unit.tools.mcp.mounting import Mount, mounting


@pytest.fixture
async def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mount]:
    monkeypatch.setattr(connection, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(connection, "REFRESH_S", 0.01)
    async with mounting(tmp_path) as mount:
        yield mount
