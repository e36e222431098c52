"""What a database does by itself when nobody writes: full-text indexes that are out of step are made anew."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.model.chats import ProcessIdentity
from sidecar.store import lifecycle
from sidecar.store.engine.sqlite import connect
from sidecar.store.lifecycle import ManagedDatabase
from sidecar.store.repair.integrity import index_problems
from tests.support.processes import poll_until

ME = ProcessIdentity("me", "boot", "", 1, 0)


def out_of_step(path: Path) -> bool:
    db = connect(str(path), isolation_level=None)
    try:
        return bool(list(index_problems(db)))
    finally:
        db.close()


def break_index(path: Path) -> None:
    db = connect(str(path), isolation_level=None)
    db.execute("INSERT INTO words (rowid, text) VALUES (4711, 'stands for nothing')")
    db.close()


@pytest.mark.parametrize(("quiet_s", "is_mended"), [(0.0, True), (3600.0, False)])
async def test_an_index_out_of_step_is_made_anew_when_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_s: float, is_mended: bool
) -> None:
    monkeypatch.setattr(lifecycle, "LOOK_S", 0.02)
    monkeypatch.setattr(lifecycle, "QUIET_S", quiet_s)
    database = ManagedDatabase(str(tmp_path), 1.0, ME, lambda owner: True)
    async with anyio.create_task_group() as tasks:
        await database.open(tasks, lambda state: None)
        path = tmp_path / "sidecar.db"
        await anyio.to_thread.run_sync(break_index, path)
        assert out_of_step(path)
        waited = 10.0 if is_mended else 0.3
        mended = await anyio.to_thread.run_sync(poll_until, lambda: not out_of_step(path), waited, 0.02)
        assert mended is is_mended
        await database.close()
