"""Fixtures of the embedded model: files with a GGUF's header, a provider with a stub of the library, a real model."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sidecar.providers.local.provider import LocalProvider
from sidecar.settings.files import default_data_dir
from tests.unit.local import stub

MakeGguf = Callable[..., Path]


@pytest.fixture
def make_gguf(tmp_path: Path) -> MakeGguf:
    """Writes a GGUF without tensors, of `size` bytes: right for whoever reads the header, of no use to llama.cpp."""

    def make(
        name: str = "tiny", words: int = 2, words_first: bool = False, size: int = 0, **entries: str | int
    ) -> Path:
        known: dict[str, str | int] = {"general.architecture": "llama", "llama.context_length": 4096}
        written = [_entry(key, value) for key, value in (known | entries).items()]
        # The template, which the tests give as the last entry, follows the words in real files too.
        written.insert(0 if words_first else len(known), _words(words))
        file = tmp_path / f"{name}.gguf"
        file.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(written)) + b"".join(written))
        if size:
            os.truncate(file, size)  # a hole, which takes no space
        return file

    return make


@pytest.fixture
async def provider(
    tmp_path: Path, make_gguf: MakeGguf, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalProvider]:
    """Has the model `tiny`, which the stub runs."""
    make_gguf()
    use_library(Path(stub.__file__), tmp_path, monkeypatch)
    provider = LocalProvider(str(tmp_path))
    yield provider
    await provider.aclose()


def use_library(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker find this file in place of xllamacpp."""
    (folder / "library").mkdir()
    shutil.copy(file, folder / "library" / "xllamacpp.py")
    monkeypatch.setenv("PYTHONPATH", str(folder / "library"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture
def real_model() -> str:
    """The path of a fetched model."""
    named = os.environ.get("SIDECAR_TEST_MODEL")
    path = named or os.path.join(default_data_dir(), "models", "smollm2.gguf")
    if not os.path.isfile(path):
        pytest.skip("run `sidecar models fetch smollm2`, or set SIDECAR_TEST_MODEL to a GGUF")
    pytest.importorskip("xllamacpp")
    return path


def _entry(key: str, value: str | int) -> bytes:
    name = struct.pack("<Q", len(key)) + key.encode()
    if isinstance(value, int):
        return name + struct.pack("<II", 4, value)
    return name + struct.pack("<IQ", 8, len(value.encode())) + value.encode()


def _words(count: int) -> bytes:
    """An array of texts, as the vocabulary is one."""
    key = "tokenizer.ggml.tokens"
    words = b"".join(struct.pack("<Q", len(word)) + word for word in (b"%x" % n for n in range(count)))
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IIQ", 9, 8, count) + words
