"""Methods for resume snapshots."""

from .base import Method

_ONE = {"chatId": "tab-7", "id": "sn-1"}

SNAPSHOTS = [
    Method(
        "snapshots/list",
        "Key",
        "SnapshotsListResult",
        "chat",
        "The snapshots of a chat: of now, and the stored ones.",
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
        "Send a snapshot once with the next prompt, and open its files again. History does not change.",
        _ONE,
    ),
]
