"""What the tests of purges and figures share: the database as it lies on the disk, and chats that fill it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

CANARY = "xyzzycanary"


def holding(spawn: Spawner, text: str = CANARY) -> list[str]:
    """The files of the data folder that hold a text, in any encoding that SQLite would use for it."""
    files = [path for path in spawn.data_dir.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


def file_size(spawn: Spawner) -> int:
    return sum((spawn.data_dir / f"sidecar.db{suffix}").stat().st_size for suffix in ("", "-wal"))


def fill(sidecar: Sidecar, chat: str, words: str, times: int, **params: Any) -> str:
    """A chat with some text in it; its session id."""
    session = ""
    for number in range(times):
        session = sidecar.run(f"{words} {number} " * 200, chatId=chat, **params)["sessionId"]
    return session


def sql(spawn: Spawner, *statements: str) -> list[tuple[Any, ...]]:
    """What the database says to somebody from outside, on one connection, while no sidecar runs."""
    db = sqlite3.connect(spawn.data_dir / "sidecar.db", isolation_level=None)
    try:
        return [row for statement in statements for row in db.execute(statement).fetchall()]
    finally:
        db.close()


def ended(sidecar: Sidecar) -> None:
    sidecar.close_stdin()
    sidecar.wait()


def folder(spawn: Spawner, name: str) -> Path:
    made = spawn.folder / name
    made.mkdir(parents=True, exist_ok=True)
    return made
