"""A fetched model in its real process. Skipped where there is none: `sidecar models fetch smollm2`."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import ReplyPart, ToolSpec
from sidecar.providers.local.provider import LocalProvider
from tests.support.patience import PATIENCE_S
from tests.unit.local.asking import ask, request, text_of

LOOK = ToolSpec(
    "look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
)


@pytest.fixture
async def local(real_model: str, tmp_path: Path) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(str(tmp_path))
    yield provider
    await provider.aclose()


async def test_it_answers_in_pieces_and_counts_tokens(local: LocalProvider, real_model: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        chunks, done = await ask(local, "Count from one to a hundred.", real_model, max_output=12)
    # What a model of this size says, and when it stops, is its own affair.
    assert text_of(chunks).strip()
    assert done.stop in ("max_tokens", "end_turn")
    assert 0 < (done.usage.output or 0) <= 12
    assert done.usage.input


async def test_characters_arrive_whole(local: LocalProvider, real_model: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        chunks, _ = await ask(local, "Repeat exactly: 🎉 漢字 🎉 漢字", real_model, max_output=30)
    assert "\ufffd" not in text_of(chunks)


async def test_cancel_is_quick_and_the_next_prompt_works(local: LocalProvider, real_model: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        await local.warm(real_model)
        with anyio.CancelScope() as scope:

            async def emit(chunk: ReplyPart) -> None:
                scope.cancel()

            await local.stream(request("Tell me a very long story.", real_model), emit)
        chunks, _ = await ask(local, "Hi", real_model, max_output=5)
    assert (scope.cancelled_caught, text_of(chunks) != "") == (True, True)


async def test_cancel_while_a_long_prompt_is_read_is_heeded_within_a_second(
    local: LocalProvider, real_model: str
) -> None:
    with anyio.fail_after(PATIENCE_S):
        await local.warm(real_model)
        with anyio.move_on_after(1) as scope:
            await ask(local, "hello world " * 1500, real_model)
        assert local._child is not None
        began = time.monotonic()
        kept = await local._child.is_usable()
    assert (scope.cancelled_caught, kept, time.monotonic() - began < 1) == (True, True, True)


async def test_a_prompt_over_the_window_fails_and_the_next_works(
    local: LocalProvider, real_model: str
) -> None:
    with anyio.fail_after(PATIENCE_S):
        local.model_entry(real_model)
        await local.models()
        window = local.model_entry(real_model).window or 0
        with pytest.raises(ProviderFailed) as caught:
            await ask(local, "hello " * window, real_model)
        chunks, _ = await ask(local, "Hi", real_model, max_output=5)
    assert (caught.value.reason, text_of(chunks) != "") == ("window", True)


async def test_tools_do_no_harm(local: LocalProvider, real_model: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        chunks, done = await ask(local, "Look at the sea.", real_model, max_output=30, tools=[LOOK])
    assert chunks != []
    assert done.stop in ("end_turn", "max_tokens", "tool_calls")


async def test_nobody_can_reach_the_model_from_outside(local: LocalProvider, real_model: str) -> None:
    """The library serves HTTP as well; its socket must be nowhere to be found."""
    await local.warm(real_model)
    assert local._child is not None
    assert _tcp_sockets(Path(f"/proc/{local._child.pid}")) == set()


async def test_a_truncated_model_is_refused(real_model: str, tmp_path: Path) -> None:
    _copy_start(real_model, tmp_path / "cut.gguf", 5_000_000)
    with pytest.raises(ProviderFailed, match="corrupted or incomplete") as caught:
        await ask(LocalProvider(str(tmp_path)), "Hi", "cut")
    assert caught.value.reason == "model_unknown"


def _tcp_sockets(process: Path) -> set[str]:
    if not process.is_dir():
        pytest.skip("needs /proc")
    links = [os.readlink(link) for link in (process / "fd").iterdir()]
    own = {link[8:-1] for link in links if link.startswith("socket:")}
    return own & {line.split()[9] for line in (process / "net/tcp").read_text().splitlines()[1:]}


def _copy_start(source: str, target: Path, length: int) -> None:
    with open(source, "rb") as whole:
        target.write_bytes(whole.read(length))
