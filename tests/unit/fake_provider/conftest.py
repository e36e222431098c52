"""A fake provider that demands a key, for each test anew."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sidecar.fake_provider import FakeProvider

from .raw import KEY


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with FakeProvider(key=KEY) as fake:
        yield fake
