"""The control API of a fake process under `/_fake/`: the requests it received, and faults to play."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .values import Recorded

if TYPE_CHECKING:
    from .server import FakeProvider

PREFIX = "/_fake/"
_SECRET = ("authorization", "x-api-key", "x-goog-api-key")


def answer(fake: FakeProvider, request: Recorded) -> tuple[int, bytes]:
    """Return status and JSON for a request that belongs to no API."""
    if request.path == "/" and request.method in ("GET", "HEAD"):
        return 200, b"" if request.method == "HEAD" else b"Ollama is running"
    if request.path == PREFIX + "requests" and request.method == "GET":
        return 200, json.dumps([_shown(each) for each in fake.requests]).encode()
    if request.path == PREFIX + "faults" and request.method == "POST":
        return _queue(fake, request.body)
    error = {"message": f"Invalid URL ({request.method} {request.path})", "type": "invalid_request_error"}
    return 404, json.dumps({"error": {**error, "param": None, "code": None}}).encode()


def _queue(fake: FakeProvider, body: bytes) -> tuple[int, bytes]:
    try:
        given = json.loads(body)
        fake.fault(given["name"], int(given.get("times", 1)), api=given.get("api"), path=given.get("path"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return 400, json.dumps({"error": {"message": str(error)}}).encode()
    return 200, b"{}"


def _shown(request: Recorded) -> dict[str, Any]:
    headers = {name: "…" if name in _SECRET else value for name, value in request.headers.items()}
    return {
        "api": request.api,
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": headers,
        "json": request.json,
        "connection": request.connection,
        "status": request.status,
        "fault": request.fault,
        "rule": request.rule,
        "sent": request.sent,
        "closedEarly": request.closed_early,
    }
