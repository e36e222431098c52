"""MCP servers with secrets of every kind, and a look at every place where one could turn up."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

Json = dict[str, Any]

PROGRAM = str(Path(__file__).parents[2] / "unit" / "tools" / "mcp" / "plain_server.py")

TABLE = "mcp_secrets"
"""The one place that has them."""


def started(folder: Path, name: str, **env: str) -> Json:
    """A server that writes its environment to a file before it serves."""
    line = f'env > "{folder}/{name}.env"; exec {sys.executable} {PROGRAM} work'
    return {"name": name, "command": "sh", "args": ["-c", line], "env": env}


class Reached:
    """An address that keeps what it was sent, and is no MCP server."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                with outer.changed:
                    outer.asked.append((self.path, dict(self.headers)))
                    outer.changed.notify_all()
                self.send_error(503, self.path)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/mcp"

    def wait_asked(self, count: int = 1) -> list[tuple[str, dict[str, str]]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, PATIENCE_S)
        return self.asked


@contextmanager
def reached() -> Iterator[Reached]:
    made = Reached()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(10)


def wait_state(sidecar: Sidecar, name: str, *states: str) -> None:
    sidecar.wait_frame(
        lambda frame: (
            frame.get("method") == "status"
            and frame["params"]["type"] == "mcp"
            and frame["params"]["data"].get("name") == name
            and frame["params"]["data"].get("state") in states
        )
    )


def said(sidecar: Sidecar, spawn: Spawner, chat: str) -> str:
    """Everything that the sidecar says of a chat and of itself, by every method that tells something."""
    report = spawn.folder / "report.zip"
    exported = spawn.folder / "chat.jsonl"
    session = sidecar.call("chat/open", chatId=chat)["sessionId"]
    answers = [
        sidecar.call("chat/configure", chatId=chat, set={"meta": {"seen": True}}),
        sidecar.call("chat/list"),
        sidecar.call("chat/history", chatId=chat),
        sidecar.call("chat/export", chatId=chat),
        sidecar.call("chat/export", chatId=chat, format="markdown"),
        sidecar.call("chat/export", chatId=chat, path=str(exported), overwrite=True),
        sidecar.call("tools/list", chatId=chat),
        sidecar.call("settings/read"),
        sidecar.call("doctor/report", path=str(report), redact=False, overwrite=True),
        sidecar.journal(session),
        sidecar.frames,
        sidecar.log_lines(),
    ]
    with zipfile.ZipFile(report) as file:
        parts = [file.read(name).decode(errors="replace") for name in file.namelist()]
    return json.dumps(answers) + exported.read_text() + "\n".join(parts)


def elsewhere(path: Path) -> str:
    """Every row of a database but those of the one table."""
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = lambda data: data.decode(errors="replace")
        # A virtual table has no rows of its own: those that it indexes and its shadow tables are among the others.
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = [name for (name,) in db.execute(query)]
        rows = [db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names if name != TABLE]
    return "\n".join(
        value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        for table in rows
        for row in table
        for value in row
    )


def kept(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        return json.dumps(db.execute(f"SELECT * FROM {TABLE}").fetchall())
