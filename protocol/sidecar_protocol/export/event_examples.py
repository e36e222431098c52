"""One example of each type of event and status: from the transcripts, which the tests replay, or written here."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from sidecar_protocol.messages.base import Json

FILE = Path(__file__).with_name("event_examples.json")
"""The examples beside this module: an installed package has no transcripts."""

_CHAT: Json = {
    "sessionId": "sc-tab-7-bf133f99bd6e5d06",
    "chatId": "tab-7",
    "epoch": "3f0c",
    "ts": 1794784325173,
}

WRITTEN_EVENTS: dict[str, Json] = {
    "import.started": {
        **_CHAT,
        "seq": 1,
        "type": "import.started",
        "data": {"importId": "im-1", "created": True},
    },
    "import.ended": {
        **_CHAT,
        "seq": 204,
        "type": "import.ended",
        "data": {"importId": "im-1", "outcome": "completed"},
    },
}
"""Events of methods whose transcripts would need large files."""

WRITTEN_STATUSES: dict[str, Json] = {
    "chats.changed": {"sessionId": "sc-tab-7-bf133f99bd6e5d06", "change": "updated"},
    "access": {
        "sessionId": "sc-tab-7-bf133f99bd6e5d06",
        "chatId": "tab-7",
        "access": "reader",
        "owner": {"pid": 4711, "client": "my-app 1.0"},
    },
    "storage": {"state": "full"},
    "models": {"provider": "anthropic"},
    "mcp": {
        "name": "docs",
        "state": "ready",
        "tools": 4,
        "attempts": 0,
        "leftOut": [],
        "since": 1794784325173,
    },
    "trust": {
        "path": "/home/ada/thesis",
        "trusted": False,
        "changes": [{"path": ".mcp.json", "change": "changed", "diff": "@@ -1 +1 @@\n-{}\n+{ }\n"}],
    },
    "progress": {"operationId": "12", "kind": "index", "done": 340, "total": 1500},
}
"""Statuses: a transcript has none, because they come whenever they come."""


def kept_event_examples() -> dict[str, Json]:
    """The examples as they are kept."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Json])


def event_examples(folder: Path) -> dict[str, Json]:
    """The first event of each type, the transcripts read in the order of their names."""
    found: dict[str, Json] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            message = json.loads(line).get("message", {})
            if message.get("method") == "event":
                found.setdefault(message["params"]["type"], message["params"])
    return {**WRITTEN_EVENTS, **found}
