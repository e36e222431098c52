"""Methods for hooks."""

from .base import Method

HOOKS = [
    Method(
        "hooks/list",
        "Key",
        "HooksListResult",
        "global",
        "The hooks that apply in a chat or project, their files, their problems, and their last runs.",
        {"chatId": "tab-7"},
    ),
]
