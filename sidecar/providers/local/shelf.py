"""What was read of the models' files, kept. Only a thread touches the disk; what is kept changes on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from ...model.failures import ProviderFailed
from . import files
from .files import LocalModel

MAX_KEPT = 64
"""More models than anybody has; reading one again costs some milliseconds."""

READ_S = 10.0
"""The bounded part that is read comes from any disk within this, unless the disk does not answer at all."""

T = TypeVar("T")


class Unusable(msgspec.Struct, frozen=True):
    """The file could not be read, and by which of ProviderFailed's reasons."""

    reason: str


Found = LocalModel | Unusable


class Shelf:
    """Knows the models in the folder and those that were asked for by path."""

    def __init__(self, models_dir: str) -> None:
        self._models_dir = models_dir
        self._kept: dict[str, Found | None] = {}
        self.listed = list(files.TITLES)
        """The names that were there, or could be fetched, when the folder was last read."""

    def told(self, name: str) -> Found | None:
        """What is known already. A name of which nothing is known is read with the others by `refresh`."""
        found = self._kept.get(name)
        self._keep(name, found)
        return found

    async def read(self, name: str) -> LocalModel:
        """The model as its file is now; ProviderFailed says why there is none."""
        kept = self._kept.get(name)
        try:
            found = await _on_thread(lambda: _read(self._models_dir, name, kept))
        except ProviderFailed as failure:
            self._keep(name, Unusable(failure.reason or "model_unknown"))
            raise
        self._keep(name, found)
        return found

    async def refresh(self) -> dict[str, Found]:
        """Look at the folder, and again at whatever was asked for. Returns what `listed` names."""
        kept = dict(self._kept)
        self.listed, found = await _on_thread(lambda: _read_all(self._models_dir, kept))
        for name, model in found.items():
            self._keep(name, model)
        return {name: found[name] for name in self.listed}

    def _keep(self, name: str, found: Found | None) -> None:
        """The name that nobody has asked for the longest goes first."""
        self._kept.pop(name, None)
        self._kept[name] = found
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]


def _read(models_dir: str, name: str, kept: Found | None) -> LocalModel:
    if isinstance(kept, LocalModel) and kept.is_current:
        return kept
    return files.read_model(models_dir, name)


def _read_all(models_dir: str, kept: dict[str, Found | None]) -> tuple[list[str], dict[str, Found]]:
    listed = list(dict.fromkeys([*files.TITLES, *files.fetched(models_dir)]))
    found: dict[str, Found] = {}
    for name in dict.fromkeys([*listed, *kept]):
        try:
            found[name] = _read(models_dir, name, kept.get(name))
        except ProviderFailed as failure:
            found[name] = Unusable(failure.reason or "model_unknown")
    return listed, found


async def _on_thread(read: Callable[[], T]) -> T:
    """A thread that hangs on a disk is left behind: it changes nothing when it returns."""
    with anyio.move_on_after(READ_S):
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    raise ProviderFailed("timeout", f"The disk with the model has not answered for {READ_S:.0f} s")
