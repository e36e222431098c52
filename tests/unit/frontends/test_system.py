"""The handlers of what belongs to no chat, over a real server: blobs, settings, trust, providers, the doctor."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.jsonrpc import Request
from sidecar_protocol.peer import Call

from sidecar.frontends.native.providers import ProviderHandlers
from sidecar.frontends.native.system import SystemHandlers
from sidecar.frontends.registry import FrontendRegistry
from sidecar.model.failures import Failure, Refused
from sidecar.rpc.dispatch import decode_params
from sidecar.rpc.wire import MessageWriter
from sidecar.server.bootstrap import EarlyResponder
from sidecar.server.server import Server
from sidecar.settings import files
from sidecar.system.launch import ServeOptions
from tests.support.patience import PATIENCE_S
from tests.unit.frontends.native import ListWriter

KEY = "sk-unit-0123456789abcdef"


class Handlers:
    def __init__(self, server: Server) -> None:
        self._handlers = {
            **SystemHandlers(server.opened_chats, server.system).handlers(),
            **ProviderHandlers(server.system, cast("MessageWriter", ListWriter())).handlers(),
        }

    async def ask(self, method: str, **params: Any) -> Any:
        return await self._handlers[method](
            Call(Request(1, method, params)), decode_params(METHODS[method], params)
        )


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "config" / "sidecar" / "config.toml"
    monkeypatch.setattr(files, "user_file", lambda: str(found))
    for name in [name for name in os.environ if name.startswith("SIDECAR_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return found


def read_text(path: Path) -> str:
    return path.read_text()


def size_of(path: str) -> int:
    return os.path.getsize(path)


@asynccontextmanager
async def serving() -> AsyncIterator[Handlers]:
    """The handlers of a server whose pipes nobody reads, with a database in memory."""
    source, target = os.pipe()
    try:
        async with anyio.create_task_group() as tasks:
            options = ServeOptions(data_dir=":memory:")
            server = Server(EarlyResponder(source, target, "lines"), options, FrontendRegistry(), tasks)
            store = (await server.opened_chats()).store
            try:
                with anyio.fail_after(PATIENCE_S):
                    yield Handlers(server)
            finally:
                with anyio.CancelScope(shield=True):
                    await store.close()
                tasks.cancel_scope.cancel()
    finally:
        os.close(source)
        os.close(target)


async def test_a_blob_is_read_as_it_was_put_and_in_part(user_file: Path) -> None:
    async with serving() as native:
        put = await native.ask(
            "blob/put", data=base64.b64encode(b"0123456789").decode(), mimeType="text/plain"
        )
        whole = await native.ask("blob/read", blobId=put.blob_id)
        part = await native.ask("blob/read", blobId=put.blob_id, offset=3, length=2)

    assert [base64.b64decode(read.data) for read in (whole, part)] == [b"0123456789", b"34"]
    assert (put.size, part.total, part.mime_type) == (10, 10, "text/plain")


async def test_a_setting_is_written_to_the_file_and_in_force_at_once(user_file: Path) -> None:
    async with serving() as native:
        before = await native.ask("settings/read")
        written = await native.ask("settings/write", scope="user", set={"session.max_steps": 7})
        after = await native.ask("settings/read")

    assert (before.values["session.max_steps"].layer, before.values["session.max_steps"].value) == (
        "default",
        50,
    )
    assert (after.values["session.max_steps"].layer, after.values["session.max_steps"].value) == ("user", 7)
    assert "max_steps = 7" in read_text(user_file)
    assert written.path == str(user_file)


async def test_a_setting_that_changed_meanwhile_is_not_overwritten(user_file: Path) -> None:
    async with serving() as native:
        await native.ask("settings/write", scope="user", set={"mode": "ask"})
        with pytest.raises(Failure) as refused:
            await native.ask("settings/write", scope="user", set={"mode": "auto"}, expectedVersion="0")
        kept = await native.ask("settings/read")

    assert (refused.value.name, kept.values["mode"].value) == ("precondition_failed", "ask")


async def test_trust_ends_when_a_trusted_file_changes(user_file: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    rules = project / ".sidecar" / "config.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('mode = "ask"\n')
    async with serving() as native:
        given = await native.ask("project/trust", path=str(project), trusted=True)
        held = await native.ask("project/trust", path=str(project))
        rules.write_text('mode = "auto"\n')
        lapsed = await native.ask("project/trust", path=str(project))

    assert (given.trusted, held.trusted, lapsed.trusted) == (True, True, False)
    assert [(change.path, change.change) for change in lapsed.changes] == [
        (".sidecar/config.toml", "changed")
    ]


async def test_a_key_makes_a_provider_ready_and_is_never_sent_back(user_file: Path) -> None:
    async with serving() as native:
        before = {one.name: one for one in (await native.ask("providers/list")).items}
        set_up = await native.ask("providers/configure", provider="openai", apiKey=KEY)
        after = {one.name: one for one in (await native.ask("providers/list")).items}

    assert (before["openai"].key_source, set_up.key_source, after["openai"].key_source) == (
        None,
        "memory",
        "memory",
    )
    assert KEY not in repr((set_up, after))


async def test_an_unknown_provider_is_refused_by_its_name(user_file: Path) -> None:
    async with serving() as native:
        with pytest.raises(Refused) as refused:
            await native.ask("providers/test", provider="opnai")

    assert (refused.value.params or {})["field"] == "provider"


async def test_the_doctor_says_the_worst_of_its_checks(user_file: Path, tmp_path: Path) -> None:
    async with serving() as native:
        found = await native.ask("doctor/run")
        report = await native.ask("doctor/report", path=str(tmp_path / "report.zip"))

    order = ["ok", "warn", "fail"]
    assert found.status == max((check.status for check in found.checks), key=order.index)
    assert size_of(report.path) == report.bytes


async def test_the_test_providers_are_among_the_models(user_file: Path) -> None:
    async with serving() as native:
        listed = await native.ask("models/list", provider="echo")

    assert [model.provider for model in listed.items] == ["echo"]
