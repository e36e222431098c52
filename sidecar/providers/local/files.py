"""Which models are on this disk, and what is needed to run them. Runs and downloads none.

A model is named by the downloaded file (`smollm2`) or by the path of any GGUF.
"""

from __future__ import annotations

import os

import msgspec

from ...model.failures import ProviderFailed
from ...system.safe_open import FileRefused, open_regular
from .gguf import CHUNK_BYTES, TEMPLATE, DamagedFile, GgufHeader, read_header

MAX_WINDOW = 16_384
"""Memory for a window is allocated at once, and a CPU takes minutes to read one: more is of no use here."""

KV_SHARE = 4
"""At most a quarter of the machine's memory is used for a window."""

DEFAULT_WINDOW = 2048
"""For a file without this value: the smallest common one."""

OUTPUT_SHARE = 4
"""A quarter of the window for one answer: a small model that loops would fill all of it."""

TITLES = {
    "smollm2": "SmolLM2 135M Instruct",
    "qwen2.5-coder-0.5b": "Qwen2.5 Coder 0.5B Instruct",
    "qwen2.5-coder-1.5b": "Qwen2.5 Coder 1.5B Instruct",
}
"""Models that `sidecar models fetch` can download."""


class LocalModel(msgspec.Struct, frozen=True):
    """A model file and what is needed to run it. `stamp` changes when the file does."""

    name: str
    path: str
    stamp: tuple[int, int]
    title: str
    window: int
    native_tools: bool = False
    """Whether the model thinks and has a format of its own for calls: thinking is not text of a grammar."""

    @property
    def max_output(self) -> int:
        return self.window // OUTPUT_SHARE

    @property
    def bytes(self) -> int:
        return self.stamp[1]

    @property
    def is_current(self) -> bool:
        """Return whether the file is still the one that was read."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_mtime_ns, found.st_size) == self.stamp


def model_path(models_dir: str, name: str) -> str:
    """Return the path of the model `name`, whether it exists or not."""
    if name and not name.endswith(".gguf") and not name.startswith("~") and not set(name) & set("/\\"):
        return os.path.join(models_dir, f"{name}.gguf")
    return os.path.abspath(os.path.expanduser(name))


def downloaded_models(models_dir: str) -> list[str]:
    """Return the names of the models in the folder."""
    try:
        files = os.listdir(models_dir)
    except OSError:
        return []
    return sorted(file[:-5] for file in files if file.endswith(".gguf") and not file.startswith("."))


def read_model(models_dir: str, name: str) -> LocalModel:
    """Return the model's facts from its header; raise ProviderFailed when it cannot be read."""
    path = model_path(models_dir, name)
    try:
        with open(open_regular(path), "rb", buffering=CHUNK_BYTES) as file:
            found = os.fstat(file.fileno())
            header = read_header(file)
    except FileNotFoundError:
        raise _missing_failure(name, path) from None
    except OSError as error:
        raise _unusable_failure(path, error.strerror or str(error)) from error
    except FileRefused as refusal:
        raise _unusable_failure(path, str(refusal)) from refusal
    except (DamagedFile, ValueError) as error:
        raise _unusable_failure(path, f"it is not a GGUF model, or damaged ({error})") from error
    return LocalModel(
        name=name,
        path=path,
        stamp=(found.st_mtime_ns, found.st_size),
        title=TITLES.get(name) or _title(header, path),
        window=_window(header),
        native_tools=all(word in str(header.get(TEMPLATE, "")) for word in ("tools", "think")),
    )


def unloadable_failure(path: str, why: str) -> ProviderFailed:
    return _unusable_failure(path, f"llama.cpp says: {why[:300]}")


def _window(header: GgufHeader) -> int:
    """Return the window that the model was trained for, limited by its use and the memory."""
    trained = _number(header, "context_length") or DEFAULT_WINDOW
    heads = _number(header, "attention.head_count") or 1
    key = _number(header, "attention.key_length") or (_number(header, "embedding_length") or 0) // heads
    kept = _number(header, "attention.head_count_kv") or heads
    token_bytes = 2 * 2 * (_number(header, "block_count") or 1) * kept * key
    affordable = _memory() // KV_SHARE // token_bytes if token_bytes else MAX_WINDOW
    return max(min(trained, MAX_WINDOW, affordable), 512)


def _number(header: GgufHeader, key: str) -> int | None:
    value = header.get(f"{header.get('general.architecture')}.{key}")
    return value if isinstance(value, int) else None


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _title(header: GgufHeader, path: str) -> str:
    return str(header.get("general.name") or os.path.basename(path))[:80]


def _missing_failure(name: str, path: str) -> ProviderFailed:
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


def _unusable_failure(path: str, why: str) -> ProviderFailed:
    return ProviderFailed(
        "model_unknown",
        f"The model {path} cannot be used: {why}",
        hint="Fetch it again, or choose another file",
        action="choose_model",
        params={"path": path},
    )
