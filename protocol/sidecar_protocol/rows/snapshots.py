"""Rows of resume snapshots."""

from .row import Method

_ONE = {"chatId": "tab-7", "id": "sn-1"}

SNAPSHOTS = [
    Method(
        "snapshots/list",
        "Key",
        "SnapshotsListResult",
        "chat",
        "What the chat's session has come to: now, and when it was kept.",
        {"chatId": "tab-7"},
    ),
    Method(
        "snapshots/show",
        "SnapshotsShowParams",
        "SnapshotsShowResult",
        "chat",
        "A snapshot as text and as entries: goal, plan, files, decisions, errors, git and the like, by priority.",
        _ONE,
    ),
    Method(
        "snapshots/restore",
        "SnapshotsRestoreParams",
        "SnapshotsRestoreResult",
        "chat",
        "Send a snapshot along with the next prompt, once, and open its files again. History stays as it is.",
        _ONE,
    ),
]
