"""Rows of hooks."""

from .row import Method

HOOKS = [
    Method(
        "hooks/list",
        "Key",
        "HooksListResult",
        "global",
        "The hooks that hold in a chat or project, where each comes from, what is wrong with it, and how it went.",
        {"chatId": "tab-7"},
    ),
]
