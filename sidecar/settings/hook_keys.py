"""Keys of `[hooks]` and `[routing]`: programs that are asked along the way, and which calls are shown a better one."""

from __future__ import annotations

from .key import Key

HOOKS = (
    Key("hooks.enabled", "flag", True, "Whether hooks run.", project="trusted"),
    Key(
        "hooks.claude_settings",
        "flag",
        False,
        "Whether hooks of Claude Code's settings files run too, the user's and a trusted project's.",
        project="never",
    ),
    Key(
        "hooks.paths",
        "paths",
        (),
        "Further files with the user's own hooks, such as a plugin's `hooks/hooks.json`.",
        project="never",
    ),
)
