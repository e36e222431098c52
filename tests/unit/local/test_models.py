"""Which models there are, and what their files say of themselves."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import ModelEntry
from sidecar.providers.local.downloads import MAX_CACHED
from sidecar.providers.local.files import MAX_WINDOW, model_path, read_model
from sidecar.providers.local.provider import LocalProvider
from tests.support.patience import PATIENCE_S
from tests.unit.local.asking import ask
from tests.unit.local.conftest import MakeGguf


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("smollm2", "/models/smollm2.gguf"),
        ("/a/b.gguf", "/a/b.gguf"),
        ("~/b.gguf", os.path.expanduser("~/b.gguf")),
        ("b.gguf", os.path.abspath("b.gguf")),
        ("./b", os.path.abspath("b")),
    ],
)
def test_a_name_lies_in_the_folder_and_a_path_where_it_says(name: str, path: str) -> None:
    assert model_path("/models", name) == path


async def test_the_picker_shows_what_is_there_and_what_can_be_fetched(
    tmp_path: Path, make_gguf: MakeGguf
) -> None:
    pytest.importorskip("xllamacpp")
    make_gguf("mine", size=10**9, **{"general.name": "Mine 1B"})
    absent = [
        ("smollm2", "SmolLM2 135M"),
        ("qwen2.5-coder-0.5b", "Qwen2.5 Coder 0.5B"),
        ("qwen2.5-coder-1.5b", "Qwen2.5 Coder 1.5B"),
    ]
    assert await LocalProvider(str(tmp_path)).models() == [
        *(
            ModelEntry(f"local:{name}", f"{title} Instruct", "local", available=False, reason="model_unknown")
            for name, title in absent
        ),
        ModelEntry("local:mine", "Mine 1B", "local", window=4096, max_output=1024, takes_tools=True),
    ]


async def test_a_removed_model_is_no_longer_available(tmp_path: Path, make_gguf: MakeGguf) -> None:
    provider, file = LocalProvider(str(tmp_path)), make_gguf()
    await provider.models()
    before = provider.model_entry("tiny").available
    file.unlink()
    await provider.models()
    assert (before, provider.model_entry("tiny").available) == (True, False)


async def test_a_file_is_not_read_before_there_is_a_thread_for_it(
    tmp_path: Path, make_gguf: MakeGguf
) -> None:
    provider, path = LocalProvider(str(tmp_path)), str(make_gguf())
    before = [provider.model_entry(name).window for name in ("tiny", path)]
    await provider.models()
    after = [provider.model_entry(name).window for name in ("tiny", path)]
    assert (before, after) == ([None, None], [4096, 4096])


async def test_what_is_remembered_is_bounded_and_the_newest_stays(
    tmp_path: Path, make_gguf: MakeGguf
) -> None:
    provider, path = LocalProvider(str(tmp_path)), str(make_gguf())
    for number in range(2 * MAX_CACHED):
        provider.model_entry(f"/absent/{number}.gguf")
    provider.model_entry(path)
    await provider.models()
    assert (len(provider._files._kept), provider.model_entry(path).window) == (MAX_CACHED, 4096)


async def test_a_disk_that_does_not_answer_is_given_up(
    tmp_path: Path, make_gguf: MakeGguf, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_gguf()
    answers = threading.Event()
    monkeypatch.setattr("sidecar.providers.local.downloads.READ_S", 0.1)
    monkeypatch.setattr("sidecar.providers.local.files.read_model", lambda *_: answers.wait(PATIENCE_S))
    with pytest.raises(ProviderFailed, match="disk") as caught, anyio.fail_after(PATIENCE_S):
        await ask(LocalProvider(str(tmp_path)), "a")
    answers.set()
    assert caught.value.reason == "timeout"


def test_a_window_is_no_larger_than_is_of_use(tmp_path: Path, make_gguf: MakeGguf) -> None:
    make_gguf(**{"llama.context_length": 1_000_000})
    assert read_model(str(tmp_path), "tiny").window == MAX_WINDOW


def test_a_window_is_no_larger_than_memory_allows(
    tmp_path: Path, make_gguf: MakeGguf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.providers.local.files._memory", lambda: 1 << 30)
    shape = {
        "block_count": 32,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "embedding_length": 4096,
    }
    make_gguf(**{f"llama.{key}": value for key, value in shape.items()})
    assert read_model(str(tmp_path), "tiny").window == 2048


def test_a_model_that_was_not_fetched_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ProviderFailed) as caught:
        read_model(str(tmp_path), "smollm2")
    assert (caught.value.reason, caught.value.hint) == ("model_unknown", "Run `sidecar models fetch smollm2`")


def test_a_header_cut_at_any_byte_is_refused(tmp_path: Path, make_gguf: MakeGguf) -> None:
    whole = make_gguf().read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut.gguf").write_bytes(whole[:length])
        with pytest.raises(ProviderFailed, match="cannot be used"):
            read_model(str(tmp_path), "cut")


def test_a_file_that_is_truncated_while_it_is_read_does_no_harm(make_gguf: MakeGguf) -> None:
    """In a process of its own, for a mapped file would end it with SIGBUS."""
    file = make_gguf(words=200_000, words_first=True)
    found = subprocess.run([sys.executable, "-c", _TRUNCATED, str(file)], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "alive\n")


_TRUNCATED = """
import os, sys, threading
from sidecar.model.failures import ProviderFailed
from sidecar.providers.local.files import read_model

path = sys.argv[1]
whole = open(path, "rb").read()

def read():
    try:
        read_model("", path)
    except ProviderFailed:
        pass

for _ in range(10):
    open(path, "wb").write(whole)
    reader = threading.Thread(target=read)
    reader.start()
    os.truncate(path, 64)
    reader.join()
print("alive")
"""


@pytest.mark.parametrize("words_first", [True, False])
def test_a_file_that_claims_millions_of_words_is_read_in_no_time(
    tmp_path: Path, make_gguf: MakeGguf, words_first: bool
) -> None:
    file = make_gguf(words=0, words_first=words_first)
    header = file.read_bytes()
    at = header.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens") + 8
    file.write_bytes(header[:at] + struct.pack("<Q", 60_000_000) + header[at + 8 :])
    os.truncate(file, 480_000_000)
    began = time.thread_time()
    with suppress(ProviderFailed):
        read_model(str(tmp_path), "tiny")
    assert time.thread_time() - began < 1.5


@pytest.mark.parametrize("words", [2, 3000])
@pytest.mark.parametrize("words_first", [True, False])
@pytest.mark.parametrize(
    ("template", "knows"),
    [("{% if tools %}<think>", True), ("{% if tools %}", False), ("{{ messages }}", False)],
)
def test_the_template_is_found_behind_the_words(
    tmp_path: Path, make_gguf: MakeGguf, words: int, words_first: bool, template: str, knows: bool
) -> None:
    make_gguf(words=words, words_first=words_first, **{"tokenizer.chat_template": template})
    model = read_model(str(tmp_path), "tiny")
    assert (model.window, model.native_tools) == (4096, knows)


@pytest.mark.parametrize("chunk", range(9, 90, 8))
@pytest.mark.parametrize("words_first", [True, False])
def test_the_template_is_found_across_two_reads(
    tmp_path: Path, make_gguf: MakeGguf, monkeypatch: pytest.MonkeyPatch, chunk: int, words_first: bool
) -> None:
    monkeypatch.setattr("sidecar.providers.local.gguf.CHUNK_BYTES", chunk)
    make_gguf(words=1100, words_first=words_first, **{"tokenizer.chat_template": "think tools"})
    assert read_model(str(tmp_path), "tiny").native_tools


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"PK\3\4" * 99)])
def test_what_is_no_model_is_refused_at_once(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "odd.gguf")
    with pytest.raises(ProviderFailed, match="cannot be used"):
        read_model(str(tmp_path), "odd")
