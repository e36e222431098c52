"""Methods for stored data: chats of other programs, purges, moved projects, statistics."""

from .base import Method

DATA = [
    Method(
        "history/import",
        "HistoryImportParams",
        "HistoryImportResult",
        "global",
        "Import the chats of another program. `status` reports the progress; a cancel keeps what was imported.",
        {"platform": "claude-code", "dryRun": True},
    ),
    Method(
        "data/purge",
        "DataPurgeParams",
        "DataPurgeResult",
        "global",
        "Remove a chat, a project's data or everything for good, and return the space to the disk.",
        {"scope": "project", "projectPath": "/home/ada/engine", "confirm": True},
    ),
    Method(
        "projects/rebind",
        "ProjectsRebindParams",
        "ProjectsRebindResult",
        "global",
        "Move the chats of a project, and their data, to the project's new folder.",
        {"from": "/home/ada/engine", "to": "/home/ada/work/engine"},
    ),
    Method(
        "stats/read",
        "StatsReadParams",
        "StatsReadResult",
        "global",
        "Figures of a chat, a project or all: measured, and null where nothing was measured.",
        {"scope": "project", "projectPath": "/home/ada/engine"},
    ),
]
