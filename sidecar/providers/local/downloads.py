"""Cache of facts about model files. Only a thread reads the disk; the cache changes on the event loop only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from ...model.failures import ProviderFailed
from . import files
from .files import LocalModel

MAX_CACHED = 64
"""More models than anybody has; reading one again costs some milliseconds."""

READ_S = 10.0
"""Any disk can read the bounded part within this time, unless it does not respond at all."""

T = TypeVar("T")


class UnusableFile(msgspec.Struct, frozen=True):
    """The file could not be read; holds one of ProviderFailed's reasons."""

    reason: str


ModelFile = LocalModel | UnusableFile


class ModelFiles:
    """Knows the models in the folder and those that were requested by path."""

    def __init__(self, models_dir: str) -> None:
        self._models_dir = models_dir
        self._kept: dict[str, ModelFile | None] = {}
        self.listed = list(files.TITLES)
        """The names that existed, or could be downloaded, when the folder was last read."""

    def cached_file(self, name: str) -> ModelFile | None:
        """Return what is cached. An unknown name is read with the others by `refresh`."""
        found = self._kept.get(name)
        self._keep(name, found)
        return found

    async def read(self, name: str) -> LocalModel:
        """Return the model as its file is now; raise ProviderFailed when there is none."""
        kept = self._kept.get(name)
        try:
            found = await _on_thread(lambda: _read(self._models_dir, name, kept))
        except ProviderFailed as failure:
            self._keep(name, UnusableFile(failure.reason or "model_unknown"))
            raise
        self._keep(name, found)
        return found

    async def refresh(self) -> dict[str, ModelFile]:
        """Read the folder, and again everything that was requested. Returns the models that `listed` names."""
        kept = dict(self._kept)
        self.listed, found = await _on_thread(lambda: _read_all(self._models_dir, kept))
        for name, model in found.items():
            self._keep(name, model)
        return {name: found[name] for name in self.listed}

    def _keep(self, name: str, found: ModelFile | None) -> None:
        """Cache a model; the least recently requested one is evicted."""
        self._kept.pop(name, None)
        self._kept[name] = found
        if len(self._kept) > MAX_CACHED:
            del self._kept[next(iter(self._kept))]


def _read(models_dir: str, name: str, kept: ModelFile | None) -> LocalModel:
    if isinstance(kept, LocalModel) and kept.is_current:
        return kept
    return files.read_model(models_dir, name)


def _read_all(models_dir: str, kept: dict[str, ModelFile | None]) -> tuple[list[str], dict[str, ModelFile]]:
    listed = list(dict.fromkeys([*files.TITLES, *files.downloaded_models(models_dir)]))
    found: dict[str, ModelFile] = {}
    for name in dict.fromkeys([*listed, *kept]):
        try:
            found[name] = _read(models_dir, name, kept.get(name))
        except ProviderFailed as failure:
            found[name] = UnusableFile(failure.reason or "model_unknown")
    return listed, found


async def _on_thread(read: Callable[[], T]) -> T:
    """Run on a thread. One that hangs on a disk is abandoned: it changes nothing when it returns."""
    with anyio.move_on_after(READ_S):
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    raise ProviderFailed("timeout", f"The disk with the model has not answered for {READ_S:.0f} s")
