"""Which models there are, and what their files say of themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers.base import ModelEntry
from sidecar.providers.local.files import MAX_WINDOW, path_of, read_model
from sidecar.providers.local.provider import LocalProvider
from tests.local.conftest import MakeGguf


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
    assert path_of("/models", name) == path


async def test_the_picker_shows_what_is_there_and_what_can_be_fetched(
    tmp_path: Path, make_gguf: MakeGguf
) -> None:
    pytest.importorskip("xllamacpp")
    make_gguf("mine", **{"general.name": "Mine 1B"})
    assert await LocalProvider(str(tmp_path)).models() == [
        ModelEntry(
            "local:smollm2", "SmolLM2 135M Instruct", "local", available=False, reason="model_unknown"
        ),
        ModelEntry("local:mine", "Mine 1B", "local", window=4096, max_output=1024),
    ]


def test_a_removed_model_is_no_longer_available(tmp_path: Path, make_gguf: MakeGguf) -> None:
    provider, file = LocalProvider(str(tmp_path)), make_gguf()
    before = provider.known("tiny").available
    file.unlink()
    assert (before, provider.known("tiny").available) == (True, False)


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


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"PK\3\4" * 99)])
def test_what_is_no_model_is_refused_at_once(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "odd.gguf")
    with pytest.raises(ProviderFailed, match="cannot be used"):
        read_model(str(tmp_path), "odd")
