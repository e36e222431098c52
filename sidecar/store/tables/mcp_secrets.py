"""Rows of `mcp_secrets`, the only table with the secrets of a chat's MCP servers. SQL for that table, and for
moving secrets out of the columns where older versions stored them."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from glob import escape, glob
from typing import Any

from ...model import JsonObject
from ...model.events import decode, encode
from ...model.mcp_secrets import Secrets, mask_config, split
from ..engine.sqlite import STORAGE_ERRORS, Connection, connect
from . import checksums

logger = logging.getLogger(__name__)

MIGRATION = "0014_secrets_and_origin.sql"
"""Creates the table; `move_out` runs with it."""

_HOLDS = "CAST(data AS TEXT) LIKE '%\"mcpServers\"%'"


def read(db: Connection, chat: int) -> Secrets:
    rows = db.execute("SELECT server, part, name, value FROM mcp_secrets WHERE chat = ?", (chat,))
    return Secrets({(server, part, name): value for server, part, name, value in rows})


def replace(db: Connection, chat: int, secrets: Secrets) -> None:
    """Store these values for the chat, and no others."""
    db.execute("DELETE FROM mcp_secrets WHERE chat = ?", (chat,))
    db.executemany(
        "INSERT INTO mcp_secrets (chat, server, part, name, value) VALUES (?, ?, ?, ?, ?)",
        [(chat, *key, value) for key, value in secrets.values.items()],
    )


def copy(db: Connection, source: int, target: int) -> None:
    """Copy the values of the chat that this one was created from."""
    replace(db, target, read(db, source))


def move_out(db: Connection) -> int:
    """Move secrets from configurations into the table, and mask them in events; return how many rows had
    some.

    Runs in the caller's transaction.
    """
    for chat, text in db.execute("SELECT id, config FROM chats").fetchall():
        servers = _object(text).get("mcpServers")
        if isinstance(servers, list):
            found = split([server for server in servers if isinstance(server, dict)])[1]
            if found.values:
                replace(db, chat, Secrets({**read(db, chat).values, **found.values}))
    return _mask_rows(db)


def mask_copies(path: str) -> None:
    """Mask the secrets in the copies that migrations left beside a database with an older schema."""
    for copy_path in glob(f"{escape(path)}.schema-*"):
        if copy_path.endswith(".part") or not os.path.isfile(copy_path):
            continue
        try:
            with closing(connect(copy_path, isolation_level=None)) as db:
                db.execute("PRAGMA secure_delete = ON")
                db.execute("BEGIN IMMEDIATE")
                _mask_rows(db)
                db.execute("COMMIT")
        except STORAGE_ERRORS as error:
            logger.warning(
                "a copy still contains secrets of MCP servers", extra={"file": copy_path, "error": str(error)}
            )


def _mask_rows(db: Connection) -> int:
    """Mask secrets in configurations and events. Recomputes the checksum of an event that has one."""
    changed = 0
    for chat, text in db.execute("SELECT id, config FROM chats").fetchall():
        config = _object(text)
        masked = mask_config(config)
        if masked != config:
            db.execute("UPDATE chats SET config = ? WHERE id = ?", (encode(masked), chat))
            changed += 1
    query = f"SELECT chat, seq, data FROM events WHERE type = 'config.updated' AND {_HOLDS}"
    for chat, seq, data in db.execute(query).fetchall():
        event = _object(data)
        masked = {
            key: mask_config(value) if isinstance(value, dict) else value for key, value in event.items()
        }
        if masked != event:
            rewrite_event(db, chat, seq, encode(masked))
            changed += 1
    return changed


def rewrite_event(db: Connection, chat: int, seq: int, data: bytes) -> None:
    """Replace an event's data. Only for what must not stay in a journal, which is otherwise append-only."""
    db.execute("UPDATE events SET data = ? WHERE chat = ? AND seq = ?", (data, chat, seq))
    if any(column == "sum" for _, column, *_ in db.execute("PRAGMA table_info(events)")):
        query = "SELECT chat, seq, first, ts, turn, type, data, pieces FROM events WHERE chat = ? AND seq = ?"
        row = db.execute(query, (chat, seq)).fetchone()
        db.execute(
            "UPDATE events SET sum = ? WHERE chat = ? AND seq = ? AND sum IS NOT NULL",
            (checksums.event_checksum(*row), chat, seq),
        )


def _object(text: Any) -> JsonObject:
    """Return the JSON object of a column; empty for a damaged row, which `recovery` handles."""
    try:
        value = decode(text)
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
