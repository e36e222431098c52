"""Rows of what is kept and for whom."""

from .row import Method

CUSTODY = [
    Method(
        "data/purge",
        "DataPurgeParams",
        "DataPurgeResult",
        "global",
        "Remove a chat, a project's data or everything for good, and give the room back to the disk.",
        {"scope": "project", "projectPath": "/home/ada/engine", "confirm": True},
    ),
    Method(
        "projects/rebind",
        "ProjectsRebindParams",
        "ProjectsRebindResult",
        "global",
        "A project's folder was moved: its chats and what belongs to them go along.",
        {"from": "/home/ada/engine", "to": "/home/ada/work/engine"},
    ),
    Method(
        "stats/read",
        "StatsReadParams",
        "StatsReadResult",
        "global",
        "Figures of a chat, a project or all: measured, and null where nobody measured.",
        {"scope": "project", "projectPath": "/home/ada/engine"},
    ),
]
