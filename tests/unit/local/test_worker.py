"""The process that runs a model, with a stub of the library in it: what it says, how it stops, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from anyio.abc import Process

from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import (
    Completion,
    ReplyPart,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCall,
    ToolSpec,
)
from sidecar.providers.local import child as local_child
from sidecar.providers.local import provider as local_provider
from sidecar.providers.local import worker as local_worker
from sidecar.providers.local.provider import MAX_WAITING, LocalProvider
from sidecar.system.parent_watch import wait_for_exit
from tests.support.patience import PATIENCE_S
from tests.support.processes import wait_until_gone, within
from tests.support.sidecar import EXIT_WITHIN
from tests.unit.local.asking import ask, request, text_of
from tests.unit.local.conftest import MakeGguf, use_library

TOOLED_BYTES = 400_000_000
"""A model of this size gets tools."""

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})


async def test_an_answer_comes_in_pieces_with_its_usage(provider: LocalProvider) -> None:
    assert await ask(provider, "think a 漢") == (
        [TextDelta("think "), TextDelta("a "), TextDelta("漢")],
        Completion("end_turn", TokenUsage(7, 3, 2)),
    )


async def test_thoughts_are_told_from_text(provider: LocalProvider) -> None:
    chunks, _ = await ask(provider, "think")
    assert chunks == [ThoughtDelta("hm"), TextDelta("think")]


async def test_an_answer_at_its_bound_says_so(provider: LocalProvider) -> None:
    _, done = await ask(provider, "a", max_output=1)
    assert done.stop == "max_tokens"


async def test_the_worker_gets_no_api_keys(provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    chunks, _ = await ask(provider, "environment")
    names = {chunk.text.strip() for chunk in chunks if isinstance(chunk, TextDelta)}
    assert names <= {*local_child.INHERITED_VARIABLES, "LC_CTYPE"}


async def test_text_that_is_a_call_becomes_one(provider: LocalProvider, make_gguf: MakeGguf) -> None:
    make_gguf(size=TOOLED_BYTES)
    chunks, done = await ask(provider, 'TOOL {"name": "look", "arguments": {"at": "sea"}}', tools=[LOOK])
    assert [(c.name, c.input) for c in chunks if isinstance(c, ToolCall)] == [("look", {"at": "sea"})]
    assert (len(chunks), done.stop) == (1, "tool_calls")


@pytest.mark.parametrize(
    "said",
    [
        'TOOL {"name": "unknown", "arguments": {}}',
        'TOOL {"name": "lo',
        "TOOL ",
        "{ [",
        "plain text",
        "T",
        "TAL",
    ],
)
async def test_what_is_no_call_stays_text(provider: LocalProvider, make_gguf: MakeGguf, said: str) -> None:
    make_gguf(size=TOOLED_BYTES)
    chunks, done = await ask(provider, said, tools=[LOOK])
    assert (text_of(chunks), done.stop) == (said, "end_turn")


async def test_the_mark_of_text_is_not_shown(provider: LocalProvider, make_gguf: MakeGguf) -> None:
    make_gguf(size=TOOLED_BYTES)
    chunks, done = await ask(provider, "TALK TALK is cheap", tools=[LOOK])
    assert (text_of(chunks), done.stop) == ("TALK is cheap", "end_turn")


async def test_a_call_that_is_only_shown_at_the_end_of_a_text_is_made(
    provider: LocalProvider, make_gguf: MakeGguf
) -> None:
    make_gguf(size=TOOLED_BYTES)
    text = 'Like this:\n```json\n{"name": "look", "arguments": {"at": "sea"}}\n```'
    chunks, done = await ask(provider, f"TALK {text}", tools=[LOOK])
    assert (text_of(chunks), done.stop) == (text, "tool_calls")
    assert isinstance(chunks[-1], ToolCall)
    assert (chunks[-1].name, chunks[-1].input) == ("look", {"at": "sea"})


@pytest.mark.parametrize("library", ["llguidance", "gbnf"])
def test_an_answer_begins_with_a_mark_and_a_call_matches_a_schema(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"llguidance": "%llguidance {}\nstart: x", "gbnf": 'root ::= "{" x "}"\nx ::= [a-z]'}
    fake = SimpleNamespace(json_schema_to_grammar=lambda schema: made[library])
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    grammar = local_worker._grammar({"const": 1})
    assert grammar is not None
    assert [part for part in ('"TOOL " call', '"TALK " text') if part not in grammar] == []
    assert ('%json {"const":1}' in grammar) == (library == "llguidance")


async def test_calls_in_pieces_are_put_together(provider: LocalProvider, make_gguf: MakeGguf) -> None:
    make_gguf("tooled", size=TOOLED_BYTES, **{"tokenizer.chat_template": "{% if tools %}<think>"})
    chunks, done = await ask(provider, "call in pieces", model="tooled", tools=[LOOK])
    assert (chunks, done.stop) == ([ToolCall("c1", "look", {"at": "sea"})], "tool_calls")


async def test_cancel_stops_the_answer_and_keeps_the_worker(provider: LocalProvider) -> None:
    with anyio.fail_after(PATIENCE_S):
        before = await _cancelled_at_first_word(provider, "endless")
        chunks, _ = await ask(provider, "again")
    assert (text_of(chunks), _pid(provider)) == ("again", before)


async def test_a_worker_that_does_not_stop_ends_itself_and_is_replaced(provider: LocalProvider) -> None:
    with anyio.fail_after(PATIENCE_S):
        before = await _cancelled_at_first_word(provider, "deaf")
        await wait_for_exit(before)
        chunks, _ = await ask(provider, "again")
    assert text_of(chunks) == "again"


async def test_a_worker_that_cannot_even_end_itself_is_killed_by_the_next_prompt(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_child, "SILENT_S", 0.2)
    with anyio.fail_after(PATIENCE_S):
        before = await _cancelled_at_first_word(provider, "stuck")
        chunks, _ = await ask(provider, "again")
        await wait_for_exit(before)
    assert text_of(chunks) == "again"


async def test_cancel_does_not_wait_for_the_worker(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_child, "SILENT_S", 3600)
    await ask(provider, "a")
    with anyio.fail_after(PATIENCE_S), within(0.5, _pid(provider)):
        await _cancelled_at_first_word(provider, "stuck")


async def test_a_worker_that_dies_ends_the_turn_and_the_next_prompt_works(provider: LocalProvider) -> None:
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(ProviderFailed, match="killed by signal 9") as caught:
            await ask(provider, "die")
        chunks, _ = await ask(provider, "again")
    assert (caught.value.reason, caught.value.retryable, text_of(chunks)) == ("stream_cut", True, "again")


async def test_a_worker_that_died_between_two_prompts_is_not_noticed(provider: LocalProvider) -> None:
    with anyio.fail_after(PATIENCE_S):
        await ask(provider, "a")
        os.kill(_pid(provider), signal.SIGKILL)
        await _process(provider).wait()
        chunks, _ = await ask(provider, "again")
    assert text_of(chunks) == "again"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("said", ["again", pytest.param("long" * 100_000, id="more than a pipe holds")])
async def test_a_worker_that_hangs_between_two_prompts_is_ended_and_replaced(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    with anyio.fail_after(PATIENCE_S):
        await ask(provider, "a")
        before = _pid(provider)
        os.kill(before, signal.SIGSTOP)
        with monkeypatch.context() as brief:
            brief.setattr(local_child, "TAKE_S", 0.3)
            with pytest.raises(ProviderFailed, match="no sign of life") as caught:
                await ask(provider, said)
        await wait_for_exit(before)
        chunks, _ = await ask(provider, said)
    assert (caught.value.reason, caught.value.retryable, text_of(chunks)) == ("timeout", True, said)


async def test_a_worker_that_falls_silent_in_an_answer_is_ended_and_replaced(
    provider: LocalProvider, tmp_path: Path
) -> None:
    impatient = LocalProvider(str(tmp_path), patience=0.5)
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(ProviderFailed, match="no sign of life") as caught:
            await ask(impatient, "deaf")
        chunks, _ = await ask(impatient, "again")
    await impatient.aclose()
    assert (caught.value.reason, caught.value.retryable, text_of(chunks)) == ("timeout", True, "again")


@pytest.mark.slow
async def test_a_worker_that_reads_for_long_shows_that_it_lives(
    provider: LocalProvider, tmp_path: Path
) -> None:
    impatient = LocalProvider(str(tmp_path), patience=1)
    with anyio.fail_after(PATIENCE_S):
        chunks, _ = await ask(impatient, "reads long")
    await impatient.aclose()
    assert chunks == [TextDelta("read")]


async def test_cancel_while_the_prompt_is_read_keeps_the_worker(provider: LocalProvider) -> None:
    await provider.warm("tiny")
    before = _pid(provider)
    with anyio.fail_after(PATIENCE_S):
        with anyio.move_on_after(0.3) as scope:
            await ask(provider, "reads long")
        chunks, _ = await ask(provider, "again")
    assert (scope.cancelled_caught, text_of(chunks), _pid(provider)) == (True, "again", before)


@pytest.mark.parametrize("model", ["tiny", "dies", "absent"])
async def test_nothing_is_left_in_the_temporary_folder(
    provider: LocalProvider, make_gguf: MakeGguf, tmp_path: Path, model: str
) -> None:
    make_gguf("dies")
    with suppress(ProviderFailed):
        await ask(provider, "a", model=model)
    assert _left_in(tmp_path) == []


async def test_closing_while_a_model_is_loaded_leaves_nothing(
    provider: LocalProvider, make_gguf: MakeGguf, tmp_path: Path
) -> None:
    make_gguf("holds")
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.warm, "holds")
            await _until(lambda: provider._child is not None and _left_in(tmp_path) != [])
            worker = _pid(provider)
            await provider.aclose()
        await wait_for_exit(worker)
    assert _left_in(tmp_path) == []


async def test_closing_ends_the_answer_under_way_and_refuses_the_next(provider: LocalProvider) -> None:
    async def emit(chunk: ReplyPart) -> None:
        await provider.aclose()

    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(ProviderFailed):
            await provider.stream(request("endless"), emit)
        with pytest.raises(ProviderFailed, match="closed"):
            await ask(provider, "again")
    assert provider._child is None


async def test_a_process_that_cannot_be_started_is_told(
    provider: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "absent"))
    with pytest.raises(ProviderFailed, match="could not be started: No such file"):
        await ask(provider, "a")
    assert _left_in(tmp_path) == []


async def test_a_worker_that_dies_while_it_loads_is_told(
    provider: LocalProvider, make_gguf: MakeGguf
) -> None:
    make_gguf("dies")
    with pytest.raises(ProviderFailed, match="out of memory") as caught:
        await ask(provider, "a", model="dies")
    assert caught.value.reason == "stream_cut"


async def test_a_chat_over_the_window_is_told_to_compact(provider: LocalProvider) -> None:
    with pytest.raises(ProviderFailed, match=r"9000 tokens.*4096 tokens") as caught:
        await ask(provider, "too long")
    assert (caught.value.reason, caught.value.action) == ("window", "compact")


async def test_an_error_of_the_library_leaves_the_worker_usable(provider: LocalProvider) -> None:
    with pytest.raises(ProviderFailed, match="it broke") as caught:
        await ask(provider, "broken")
    before = _pid(provider)
    await ask(provider, "again")
    assert (caught.value.reason, _pid(provider)) == ("bad_reply", before)


async def test_an_idle_worker_leaves_and_the_next_prompt_starts_another(
    provider: LocalProvider, tmp_path: Path
) -> None:
    brief = LocalProvider(str(tmp_path), idle_seconds=0.3)
    with anyio.fail_after(PATIENCE_S):
        await ask(brief, "a")
        await wait_for_exit(_pid(brief))
        chunks, _ = await ask(brief, "again")
    await brief.aclose()
    assert text_of(chunks) == "again"


async def test_warm_loads_before_the_prompt(provider: LocalProvider) -> None:
    await provider.warm("tiny")
    before = _pid(provider)
    await ask(provider, "a")
    assert _pid(provider) == before


async def test_warm_is_silent_about_what_the_prompt_will_be_told(provider: LocalProvider) -> None:
    await provider.warm("absent")
    with pytest.raises(ProviderFailed, match="no model file"):
        await ask(provider, "a", model="absent")


async def test_another_model_takes_the_place_of_the_first(
    provider: LocalProvider, make_gguf: MakeGguf
) -> None:
    make_gguf("other")
    await ask(provider, "a")
    before = _pid(provider)
    with anyio.fail_after(PATIENCE_S):
        await ask(provider, "a", model="other")
        await wait_for_exit(before)


async def test_requests_are_answered_in_the_order_in_which_they_came(provider: LocalProvider) -> None:
    ended: list[int] = []

    async def one(number: int) -> None:
        await ask(provider, f"number {number}")
        ended.append(number)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(one, number)
    assert ended == list(range(8))


async def test_a_queue_that_is_full_refuses(provider: LocalProvider) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_WAITING):
            tasks.start_soon(ask, provider, "endless")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ProviderFailed) as caught:
            await ask(provider, "a")
        tasks.cancel_scope.cancel()
    assert (caught.value.reason, caught.value.retryable) == ("overloaded", True)


async def test_without_the_library_the_remedy_is_named(
    tmp_path: Path, make_gguf: MakeGguf, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tmp_path / "absent.py"
    absent.write_text('raise ModuleNotFoundError("No module named xllamacpp")\n')
    use_library(absent, tmp_path, monkeypatch)
    make_gguf()
    with pytest.raises(ProviderFailed) as caught:
        await ask(LocalProvider(str(tmp_path)), "a")
    assert (caught.value.reason, caught.value.hint) == (
        "model_unknown",
        "Run `pip install 'chat-sidecar[local]'`",
    )


async def test_a_file_that_llama_cpp_refuses_is_named_with_its_words(
    tmp_path: Path, make_gguf: MakeGguf
) -> None:
    pytest.importorskip("xllamacpp")
    file = make_gguf()
    with pytest.raises(ProviderFailed, match=f"{file} cannot be used: llama.cpp says: ") as caught:
        await ask(LocalProvider(str(tmp_path)), "a")
    assert caught.value.reason == "model_unknown"


async def test_the_worker_ends_when_its_stdin_does(provider: LocalProvider) -> None:
    await ask(provider, "a")
    stdin = _process(provider).stdin
    assert stdin is not None
    await stdin.aclose()
    assert await anyio.to_thread.run_sync(wait_until_gone, _pid(provider), EXIT_WITHIN)


@pytest.mark.parametrize("model", ["tiny", "holds"])
@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the worker hears of it once the model is loaded"
)
async def test_the_worker_is_gone_within_two_seconds_of_kill_9(
    provider: LocalProvider, make_gguf: MakeGguf, tmp_path: Path, model: str
) -> None:
    make_gguf(model)
    parent = await anyio.open_process([sys.executable, "-c", _PARENT, str(tmp_path), model])
    assert parent.stdout is not None
    worker = int(await parent.stdout.receive())
    parent.send_signal(signal.SIGKILL)
    await parent.aclose()
    assert await anyio.to_thread.run_sync(wait_until_gone, worker, EXIT_WITHIN)


def test_the_worker_imports_nothing_of_the_program() -> None:
    code = (
        "import sys, runpy; runpy.run_path(sys.argv[1]); "
        "print([m for m in sys.modules if m.startswith(('sidecar', 'anyio'))])"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", code, str(local_worker.__file__)], capture_output=True, text=True
    )
    assert found.stdout == "[]\n"


_PARENT = """
import anyio, os, sys
from sidecar.providers.local.child import ModelWorker
from sidecar.providers.local.files import read_model

async def main():
    model = read_model(sys.argv[1], sys.argv[2])
    child = await ModelWorker.start(model, 60)
    if sys.argv[2] == "tiny":
        await child.ready()
    while sys.argv[2] == "holds" and not os.path.exists(f"{model.path}.loading"):
        await anyio.sleep(0.01)
    print(child.pid, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


def _left_in(folder: Path) -> list[Path]:
    return list(folder.glob("sidecar-model-*"))


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  there is nothing to wait on
        await anyio.sleep(0.01)


async def _cancelled_at_first_word(provider: LocalProvider, said: str) -> int:
    pids: list[int] = []
    with anyio.CancelScope() as scope:

        async def emit(chunk: ReplyPart) -> None:
            pids.append(_pid(provider))
            scope.cancel()

        await provider.stream(request(said), emit)
    return pids[0]


def _pid(provider: LocalProvider) -> int:
    return _process(provider).pid


def _process(provider: LocalProvider) -> Process:
    assert provider._child is not None
    return provider._child._process


async def test_loading_reports_its_progress_and_can_be_cancelled(
    provider: LocalProvider, make_gguf: MakeGguf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_gguf("holds", size=1000)
    reports: list[tuple[str, int, int]] = []
    monkeypatch.setattr(local_provider, "REPORT_S", 0.05)
    loading = LocalProvider(str(tmp_path), report_loading=lambda *report: reports.append(report))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_reported, loading, reports)
            with pytest.raises(ProviderFailed, match="was cancelled") as caught:
                await ask(loading, "a", "holds")

    size = (tmp_path / "holds.gguf").stat().st_size
    assert [(name, total, done <= total) for name, done, total in reports[:1]] == [("holds", size, True)]
    assert (caught.value.retryable, loading._child) == (False, None)


async def _cancel_when_reported(provider: LocalProvider, reports: list[tuple[str, int, int]]) -> None:
    await _until(lambda: reports != [])
    provider.cancel_loading("another")  # does nothing
    provider.cancel_loading("holds")


async def test_a_loaded_model_is_not_ended_by_a_late_cancel(provider: LocalProvider, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    loading = LocalProvider(str(tmp_path), report_loading=lambda *report: reports.append(report))
    with anyio.fail_after(PATIENCE_S):
        await loading.warm("tiny")
        seen, child = list(reports), loading._child
        loading.cancel_loading("tiny")  # too late: it is loaded
        chunks, _ = await ask(loading, "a", "tiny")
        await loading.aclose()

    assert (text_of(chunks), child is not None) == ("a", True)
    assert all(total == done for _, done, total in seen[-1:])
