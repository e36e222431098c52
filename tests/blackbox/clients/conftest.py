"""What the client's tests share: asyncio as the back end, and restarts without their pauses."""

from __future__ import annotations

import pytest
from sidecar_client import link


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "RESTART_DELAYS", (0.0,) * len(link.RESTART_DELAYS))
