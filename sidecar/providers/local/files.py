"""Which models lie on this disk, and what must be known to run them. Runs none of them and fetches nothing.

A model is named by the file that was fetched (`smollm2`) or by the path of any GGUF.
"""

from __future__ import annotations

import os
import stat
from typing import Any

import msgspec

from ...model.failures import ProviderFailed
from .gguf import CHUNK_BYTES, TEMPLATE, Damaged, read_header

MAX_WINDOW = 16_384
"""Memory for a window is taken at once, and reading one takes minutes on a processor: more is of no use here."""

KV_SHARE = 4
"""At most a quarter of the machine's memory goes to a window."""

DEFAULT_WINDOW = 2048
"""For a file that does not say: the smallest that is usual."""

OUTPUT_SHARE = 4
"""A quarter of the window for one answer: small models that have lost their way would fill all of it."""

TITLES = {"smollm2": "SmolLM2 135M Instruct"}
"""Models that `sidecar models fetch` can get."""


class LocalModel(msgspec.Struct, frozen=True):
    """A model's file and what must be known to run it. `stamp` changes when the file does."""

    name: str
    path: str
    stamp: tuple[int, int]
    title: str
    window: int
    native_tools: bool = False

    @property
    def max_output(self) -> int:
        return self.window // OUTPUT_SHARE

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was read."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_mtime_ns, found.st_size) == self.stamp


def path_of(models_dir: str, name: str) -> str:
    """Where the model `name` is, or would be."""
    if name and not name.endswith(".gguf") and not name.startswith("~") and not set(name) & set("/\\"):
        return os.path.join(models_dir, f"{name}.gguf")
    return os.path.abspath(os.path.expanduser(name))


def fetched(models_dir: str) -> list[str]:
    """The names of the models in the folder."""
    try:
        files = os.listdir(models_dir)
    except OSError:
        return []
    return sorted(file[:-5] for file in files if file.endswith(".gguf") and not file.startswith("."))


def read_model(models_dir: str, name: str) -> LocalModel:
    """The model's facts from its header; ProviderFailed says why there are none."""
    path = path_of(models_dir, name)
    try:
        with open(path, "rb", buffering=CHUNK_BYTES, opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Damaged("it is not a file")
            header = read_header(file)
    except FileNotFoundError:
        raise _missing(name, path) from None
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except (Damaged, ValueError) as error:
        raise _unusable(path, f"it is not a GGUF model, or damaged ({error})") from error
    return LocalModel(
        name=name,
        path=path,
        stamp=(found.st_mtime_ns, found.st_size),
        title=TITLES.get(name) or _title(header, path),
        window=_window(header),
        native_tools="tools" in str(header.get(TEMPLATE, "")),
    )


def unloadable(path: str, why: str) -> ProviderFailed:
    return _unusable(path, f"llama.cpp says: {why[:300]}")


def _window(header: dict[str, Any]) -> int:
    """What the model was trained for, as far as it is of use and the memory allows."""
    trained = _number(header, "context_length") or DEFAULT_WINDOW
    heads = _number(header, "attention.head_count") or 1
    key = _number(header, "attention.key_length") or (_number(header, "embedding_length") or 0) // heads
    kept = _number(header, "attention.head_count_kv") or heads
    token_bytes = 2 * 2 * (_number(header, "block_count") or 1) * kept * key
    affordable = _memory() // KV_SHARE // token_bytes if token_bytes else MAX_WINDOW
    return max(min(trained, MAX_WINDOW, affordable), 512)


def _number(header: dict[str, Any], key: str) -> int | None:
    value = header.get(f"{header.get('general.architecture')}.{key}")
    return value if isinstance(value, int) else None


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _title(header: dict[str, Any], path: str) -> str:
    return str(header.get("general.name") or os.path.basename(path))[:80]


def _open_at_once(path: str, flags: int) -> int:
    """A FIFO without a writer must not hold us."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _missing(name: str, path: str) -> ProviderFailed:
    known = name in TITLES
    return ProviderFailed(
        "model_unknown",
        f"The model {name!r} has not been fetched yet" if known else f"There is no model file {path}",
        hint=f"Run `sidecar models fetch {name}`"
        if known
        else "`sidecar models list` shows those that there are",
        action="choose_model",
        params={"model": f"local:{name}"[:120], "path": path},
    )


def _unusable(path: str, why: str) -> ProviderFailed:
    return ProviderFailed(
        "model_unknown",
        f"The model {path} cannot be used: {why}",
        hint="Fetch it again, or choose another file",
        action="choose_model",
        params={"path": path},
    )
