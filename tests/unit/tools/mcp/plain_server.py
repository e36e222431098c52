"""An MCP server without the SDK: it starts in a moment, and misbehaves when told to.

`python plain_server.py TOKEN [BEHAVIOUR [ARGUMENT]]`: TOKEN makes its command line unlike any other.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

BEHAVIOUR = sys.argv[2] if len(sys.argv) > 2 else ""
ARGUMENT = sys.argv[3] if len(sys.argv) > 3 else ""

Result = dict[str, Any]
tools: list[dict[str, Any]] = []
calls: dict[str, Callable[[Any, dict[str, Any]], Result | None]] = {}


def send(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def text(words: str, **more: Any) -> Result:
    return {"content": [{"type": "text", "text": words}], **more}


def offer(name: str, **more: Any) -> None:
    tools.append({"name": name, "description": f"{name} it", "inputSchema": {"type": "object"}, **more})


def tool(function: Callable[[Any, dict[str, Any]], Result | None]) -> None:
    offer(function.__name__)
    calls[function.__name__] = function


@tool
def echo(id: Any, params: dict[str, Any]) -> Result:
    more = {"resultType": "complete"} if BEHAVIOUR == "modern" else {}
    return text(json.dumps(params["arguments"]), **more)


@tool
def fail(id: Any, params: dict[str, Any]) -> Result:
    return text("no such thing", isError=True)


@tool
def crash(id: Any, params: dict[str, Any]) -> Result:
    sys.stderr.write("earlier words\n" * 1000 + "the disk is on fire\n")
    sys.stderr.flush()
    os._exit(3)


@tool
def hang(id: Any, params: dict[str, Any]) -> None:
    """Never answered; ARGUMENT is a file for what is heard of it."""
    if ARGUMENT:
        with open(ARGUMENT, "a") as file:
            file.write(f"called {id}\n")
    send(method="notifications/progress", params={"progressToken": id, "progress": 1, "message": "at it"})


@tool
def where(id: Any, params: dict[str, Any]) -> Result:
    return text(json.dumps({"pid": os.getpid(), "cwd": os.getcwd(), "environ": dict(os.environ)}))


@tool
def picture(id: Any, params: dict[str, Any]) -> Result:
    content = [
        {"type": "text", "text": "here it is"},
        {"type": "image", "mimeType": "image/png", "data": "AAAAAA=="},
        {"type": "resource", "resource": {"uri": "x://1", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x://2", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "x://3", "name": "three"},
    ]
    return {"content": content}


@tool
def photo(id: Any, params: dict[str, Any]) -> Result:
    """A valid image, and one within a resource."""
    data = base64.b64encode(picture_bytes()).decode()
    inner = {"uri": "x://p", "mimeType": "image/png", "blob": data}
    return {
        "content": [
            {"type": "image", "mimeType": "image/png", "data": data},
            {"type": "resource", "resource": inner},
        ]
    }


def picture_bytes() -> bytes:
    """A grey PNG of one pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


@tool
def data(id: Any, params: dict[str, Any]) -> Result:
    return {"content": [], "structuredContent": {"answer": 42}}


@tool
def huge(id: Any, params: dict[str, Any]) -> Result:
    return text("x" * params["arguments"]["size"])


@tool
def half_an_emoji(id: Any, params: dict[str, Any]) -> Result:
    return text("a\ud83db")


@tool
def nonsense(id: Any, params: dict[str, Any]) -> Result:
    return {"content": "this is no list"}


@tool
def refuse(id: Any, params: dict[str, Any]) -> None:
    send(id=id, error={"code": -32602, "message": "I do not want to"})


@tool
def work(id: Any, params: dict[str, Any]) -> Result:
    for step in (1, 2):
        send(method="notifications/progress", params={"progressToken": id, "progress": step, "total": 2})
    return text("done")


@tool
def grow(id: Any, params: dict[str, Any]) -> Result:
    offer("grown", annotations={"readOnlyHint": True, "title": "Has  grown"})
    send(method="notifications/tools/list_changed")
    return text("grown")


@tool
def leave_the_group(id: Any, params: dict[str, Any]) -> Result:
    """A grandchild in a session of its own, orphaned, which holds no pipe of ours."""
    sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(600)", sys.argv[1]]
    quiet = subprocess.DEVNULL
    child = f"import subprocess; subprocess.Popen({sleeper!r}, start_new_session=True)"
    subprocess.run([sys.executable, "-S", "-c", child], stdin=quiet, stdout=quiet, stderr=quiet, check=True)
    return text("left")


@tool
def flood(id: Any, params: dict[str, Any]) -> None:
    """Asks without end and reads no answer."""
    while True:
        send(id=f"ping-{id}", method="ping")


@tool
def endless(id: Any, params: dict[str, Any]) -> None:
    """A line without end."""
    while True:
        sys.stdout.write("x" * 65536)


@tool
def chatter(id: Any, params: dict[str, Any]) -> Result:
    """A few thousand notifications and stray lines before the answer."""
    for _ in range(20):
        write("just saying")
    for number in range(1500):
        send(method="notifications/message", params={"level": "info", "data": number})
    return text("said it all")


def page(params: dict[str, Any]) -> Result:
    start = int(params.get("cursor", 0))
    found: Result = {"tools": tools[start : start + 100]}
    if BEHAVIOUR == "modern":
        found |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if start + 100 < len(tools) or BEHAVIOUR == "endless-list":
        found["nextCursor"] = str(start + 100 if BEHAVIOUR != "endless-list" else 0)
    return found


def initialize(params: dict[str, Any]) -> Result:
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "plain", "version": "1"},
    }


def answer(message: dict[str, Any]) -> None:
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize" and BEHAVIOUR == "modern":
        supported = {"requested": params["protocolVersion"], "supported": ["2026-07-28"]}
        send(id=id, error={"code": -32022, "message": "too old", "data": supported})
    elif method == "server/discover":
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        send(id=id, result={"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **more})
    elif method == "initialize":
        send(id=id, result=initialize(params))
    elif method == "tools/list":
        send(id=id, result=page(params))
    elif method == "tools/call":
        result = calls[params["name"]](id, params)
        if result is not None:
            send(id=id, result=result)
    elif method == "notifications/cancelled" and ARGUMENT:
        with open(ARGUMENT, "a") as file:
            file.write(f"cancelled {params['requestId']}\n")


def misbehave() -> None:
    if BEHAVIOUR == "slow":
        with open(ARGUMENT) as gate:
            gate.read()
    elif BEHAVIOUR == "garbage":
        while True:
            write("Welcome! <html> \x00 {not json}")
    elif BEHAVIOUR == "silent":
        sys.stderr.write("thinking about it\n")
        sys.stderr.flush()
        while sys.stdin.read(1):
            pass
    elif BEHAVIOUR == "stubborn":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif BEHAVIOUR == "dies-once" and not os.path.exists(ARGUMENT):
        with open(ARGUMENT, "w"):
            sys.exit("not today")
    elif BEHAVIOUR == "many":
        for number in range(1000):
            offer(f"extra_{number}")
    elif BEHAVIOUR == "odd":
        offer("x__echo")
        offer("echo", description="a second one of the same name")
        offer("a.b/c d", description="d" * 5000)
        offer("l" * 100)
        offer("n" * 1000)
        offer(
            "wide", inputSchema={"type": "object", "properties": {"p" * 200 + str(n): {} for n in range(200)}}
        )


misbehave()
for line in sys.stdin:
    answer(json.loads(line))
if BEHAVIOUR == "stubborn":
    import threading

    threading.Event().wait()
