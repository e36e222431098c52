"""A program on a pipe that behaves as its first argument says. Only what a real sidecar would never do."""

from __future__ import annotations

import json
import signal
import sys
import time

INITIALIZED = {
    "version": 1,
    "server": {"name": "stub", "version": "0"},
    "instanceId": "i",
    "capabilities": {},
    "limits": dict.fromkeys(
        ["maxFrameBytes", "maxChatIdBytes", "maxQueuedPrompts", "maxDeltaBytes", "maxMetaBytes"], 1
    ),
}


def main(manner: str) -> int:
    if manner == "crash":
        sys.stderr.write("Traceback: no such table\n")
        return 3
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if manner == "chatty":
        sys.stderr.write("x" * 500_000 + "\nlast line\n")
    for line in sys.stdin:
        answer(manner, json.loads(line))
    if manner == "stubborn":
        time.sleep(600)
    return 0


def answer(manner: str, message: dict[str, object]) -> None:
    result: object = (
        INITIALIZED if message["method"] == "initialize" else {"chats": [], "text": "é" * 200_000}
    )
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
