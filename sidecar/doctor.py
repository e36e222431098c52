"""The doctor: checks of the installation, each with a code and what to do, and the zip for a bug report."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

import anyio.to_thread
import msgspec

from . import __version__
from .model.chats import Page
from .model.events import encode
from .model.failures import Failure, invalid
from .settings import Settings
from .store import Store
from .store.sqlite import IS_SAFE, SAFE_VERSION
from .store.sqlite import VERSION as SQLITE_VERSION
from .system.files import FileRefused, write_whole

LOW_DISK_BYTES = 200 * 1024 * 1024
"""Below this a long chat with attachments may soon not be kept."""


class Check(msgspec.Struct, frozen=True):
    name: str
    status: Literal["ok", "warn", "fail"]
    code: str
    message: str
    action: str | None = None


async def examine(store: Store | Failure, settings: Settings | str) -> list[Check]:
    """All checks; a store or settings that could not be opened come as the reason why."""
    checks = [_python(), _sqlite(), _settings(settings)]
    if isinstance(store, Failure):
        return [
            *checks,
            Check("storage", "fail", f"storage_{store.reason or 'closed'}", store.message, store.action),
        ]
    return [*checks, await _database(store), await anyio.to_thread.run_sync(_disk, store.data_dir)]


async def write_report(
    path: str, redact: bool, checks: list[Check], store: Store | None, settings: dict[str, Any]
) -> list[str]:
    """A zip with what a bug report needs and nothing that was said; `redact` leaves out titles, paths and ids."""
    if not os.path.isabs(path):
        raise invalid("path", "an absolute path")
    import platform

    about = {
        "sidecar": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "sqlite": SQLITE_VERSION,
    }
    files = {
        "about.json": about,
        "checks.json": [msgspec.structs.asdict(check) for check in checks],
        "settings.json": {key: _hidden(value, redact) for key, value in settings.items()},
    }
    if store:
        chats, _ = await store.page(Page(limit=200))
        shown = ("epoch", "last_seq", "turns", "state", "created_at", "last_activity", "archived", "model")
        private = () if redact else ("title", "project_path", "key")
        files["chats.json"] = [{name: getattr(chat, name) for name in (*shown, *private)} for chat in chats]
        files["statistics.json"] = msgspec.structs.asdict(await store.statistics(None, None))
    await anyio.to_thread.run_sync(_zip, path, files)
    return list(files)


def _python() -> Check:
    return Check("python", "ok", "python", f"Python {sys.version.split()[0]}, sidecar {__version__}")


def _sqlite() -> Check:
    if IS_SAFE:
        return Check("sqlite", "ok", "sqlite", f"SQLite {SQLITE_VERSION}")
    safe = ".".join(map(str, SAFE_VERSION))
    return Check(
        "sqlite",
        "warn",
        "sqlite_old",
        f"SQLite {SQLITE_VERSION} can damage a database that several processes write; {safe} and newer cannot",
        "Install pysqlite3 where it has a wheel, or a newer Python; until then run one sidecar a database",
    )


def _settings(settings: Settings | str) -> Check:
    if isinstance(settings, str):
        return Check("settings", "fail", "settings_broken", settings, "Mend the file that is named")
    if settings.warnings:
        return Check("settings", "warn", "settings_withheld", "; ".join(settings.warnings), "project/trust")
    return Check("settings", "ok", "settings", f"Model {settings.model or 'chosen automatically'}")


async def _database(store: Store) -> Check:
    try:
        problems = await store.integrity()
    except Failure as failure:
        return Check("database", "fail", f"storage_{failure.reason}", failure.message, failure.action)
    if problems:
        return Check(
            "database", "fail", "storage_corrupt", "; ".join(problems[:3]), "Export what can be read"
        )
    return Check("database", "ok", "database", f"{store.data_dir}: sound")


def _disk(data_dir: str) -> Check:
    if data_dir == ":memory:":
        return Check(
            "disk", "warn", "in_memory", "Chats are kept in memory and end with the process", "Set --data-dir"
        )
    import shutil

    free = shutil.disk_usage(data_dir).free
    message = f"{free // (1024 * 1024)} MiB free in {data_dir}"
    if free < LOW_DISK_BYTES:
        return Check("disk", "warn", "disk_low", message, "Free some space")
    return Check("disk", "ok", "disk", message)


def _hidden(value: Any, redact: bool) -> Any:
    return "(hidden)" if redact and isinstance(value, str) and os.sep in value else value


def _zip(path: str, files: dict[str, Any]) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, encode(content))
    try:
        write_whole(path, buffer.getvalue())
    except FileRefused as refusal:
        raise invalid("path", f"a file that can be written: {refusal}") from refusal
