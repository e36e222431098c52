"""A provider on the loopback that refuses every request and repeats the whole of it, keys included."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RefusingServer(ThreadingHTTPServer):
    """`heard` is what came with each request: its address and its headers."""

    daemon_threads = True

    def __init__(self) -> None:
        self.heard: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RefusingServer

    def do_GET(self) -> None:
        self._refuse()

    def do_POST(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        said = f"{self.path} {dict(self.headers)}"
        self.server.heard.append(said)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        message = f"Incorrect API key provided: {said}"
        error = {"type": "invalid_request_error", "code": "invalid_api_key", "message": message}
        body = json.dumps({"error": error}).encode()
        self.send_response(401, "Unauthorized")
        self.send_header("content-type", "application/json")
        self.send_header("x-repeated", said.replace("\n", " "))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of it belongs on the tests' stderr."""


@contextmanager
def refusing_server() -> Iterator[RefusingServer]:
    with RefusingServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
