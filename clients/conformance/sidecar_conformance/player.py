"""Plays the sidecar's side of a transcript on a pipe: what the client sends is compared, what the sidecar said is sent.

A transcript is one conversation. The client may greet first, whatever came before in the transcript, may read events
again that it was sent, and says goodbye when it likes; invalid frames, which no client library can send, are passed
over with their answers. Standard library only, so that it can be copied.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

Json = dict[str, Any]

_GREETING = "initialize"

_FREE = ("processId", "client", "capabilities", "tools", "deltaMs", "versions")
"""Members of `initialize` in which each client describes itself."""


def play(path: Path, process: int, source: IO[bytes], target: IO[bytes]) -> int:
    """0 when the client has kept to the transcript; 1 after saying on stderr where it did not."""
    player = Player(_lines(path, process), target)
    for frame in source:
        player.take(json.loads(frame))
        if player.mismatch:
            sys.stderr.write(f"{path.stem}: {player.mismatch}\n")
            return 1
        if player.left:
            break
    return 0


class Player:
    """`mismatch` says where the client left the transcript; `left` is true after `exit`."""

    def __init__(self, lines: list[Json], target: IO[bytes]) -> None:
        self.mismatch = ""
        self.left = False
        self._lines = lines
        self._target = target
        self._ids: dict[Any, Any] = {}
        """The client's ids by those of the transcript."""
        self._told: dict[str, dict[int, Json]] = {}
        """The events that were sent, by session and seq."""
        self._skip_to_greeting()

    def take(self, message: Json) -> None:
        """Take a message of the client, and send what the sidecar said after it."""
        if message.get("method") == "exit":
            self.left = True
        elif message.get("method") == "events/read" and not self._expects(message):
            self._read_again(message)
        elif not self._lines or (message.get("method") == "shutdown" and not self._expects(message)):
            self._answer_goodbye(message)
        else:
            expected = self._lines.pop(0)["message"]
            self.mismatch = self._difference(expected, message)
            if self.mismatch:
                return
            if "id" in message and "method" in message:
                self._ids[expected["id"]] = message["id"]
            self._speak()

    def _skip_to_greeting(self) -> None:
        accepted = [line["message"]["id"] for line in self._lines if "result" in line["message"]]
        greetings = [
            number
            for number, line in enumerate(self._lines)
            if line["message"].get("method") == _GREETING and line["message"]["id"] in accepted
        ]
        if greetings:
            del self._lines[: greetings[0]]
        self._speak()

    def _speak(self) -> None:
        """Send the sidecar's lines up to the client's next one."""
        while self._lines and self._lines[0]["from"] == "sidecar":
            message = dict(self._lines.pop(0)["message"])
            if "method" not in message:
                if message.get("id") not in self._ids:
                    continue  # the answer to a line that was passed over
                message["id"] = self._ids[message["id"]]
            self._send(message)

    def _difference(self, expected: Json, message: Json) -> str:
        if expected.get("method") != message.get("method"):
            return f"the client sent {_short(message)} where the transcript has {_short(expected)}"
        wanted, given = expected.get("params"), message.get("params")
        if expected.get("method") == _GREETING and isinstance(wanted, dict) and isinstance(given, dict):
            wanted, given = ({k: v for k, v in one.items() if k not in _FREE} for one in (wanted, given))
        if expected.get("method") == "$/cancelRequest" and isinstance(wanted, dict):
            wanted = {"id": self._ids.get(wanted.get("id"), wanted.get("id"))}
        # How a client says that it could not answer is its own affair: by an error, or by a result that says so.
        answers_differ = "result" in expected and expected["result"] != message.get("result")
        if (wanted or {}) != (given or {}) or answers_differ:
            return f"the client sent {_short(message)} where the transcript has {_short(expected)}"
        return ""

    def _expects(self, message: Json) -> bool:
        return bool(self._lines) and not self._difference(self._lines[0]["message"], message)

    def _read_again(self, message: Json) -> None:
        after, session = message["params"]["after"], message["params"]["sessionId"]
        told = self._told.get(session, {})
        events = [
            event for _, event in sorted(told.items()) if event.get("from", event["seq"]) > after["seq"]
        ]
        page = {"sessionId": session, "chatId": None, "events": events, "hasMore": False}
        page["next"] = {"epoch": after["epoch"], "seq": max([after["seq"], *told])}
        self._send({"jsonrpc": "2.0", "id": message["id"], "result": page})

    def _answer_goodbye(self, message: Json) -> None:
        if message.get("method") == "shutdown":
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"chats": []}})
        elif "method" in message:
            self.mismatch = f"the client sent {_short(message)} after the end of the transcript"

    def _send(self, message: Json) -> None:
        if message.get("method") == "event":
            event = message["params"]
            self._told.setdefault(event["sessionId"], {})[event["seq"]] = event
        self._target.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self._target.flush()


def _lines(path: Path, process: int) -> list[Json]:
    """The messages of the Nth process, without those that are no JSON-RPC."""
    found: list[Json] = []
    number = 0
    for line in _read(path):
        if line["from"] == "setup":
            number += 1
        elif number == process and "message" in line and _can_be_sent(line["message"]):
            found.append(line)
    if not found:
        raise SystemExit(f"{path.stem} has no process {process}")
    return found


def _can_be_sent(message: Json) -> bool:
    """Whether a client library would send it; the sidecar's own messages all qualify."""
    if "method" not in message:
        return True
    known = "id" in message or message["method"] in ("event", "status", "$/cancelRequest", "exit")
    return known and isinstance(message.get("params", {}), dict)


def _read(path: Path) -> Iterator[Json]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def _short(message: Json) -> str:
    return f"{json.dumps(message, ensure_ascii=False):.300}"
