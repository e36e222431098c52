from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from sidecar.model.chats import ProcessIdentity
from sidecar.store import Store
from tests.blackbox.models.network import Authority
from tests.unit.web.internet import Internet, connected


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls(authority: Authority) -> ssl.SSLContext:
    return authority.server("public.test", "other.test")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with anyio.create_task_group() as tasks:
        made = Store(
            str(tmp_path / "data"), 5.0, ProcessIdentity("test", "boot", "", 1, 0), lambda owner: True
        )
        await made.open(tasks, lambda state: None)
        yield made
        await made.close()


@pytest.fixture
async def internet(
    store: Store,
    tmp_path: Path,
    authority: Authority,
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Internet]:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    with connected(Internet(store, str(tmp_path)), tls, monkeypatch.setenv) as internet:
        yield internet
