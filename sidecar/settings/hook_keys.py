"""Keys of `[hooks]` and `[routing]`: programs that are asked along the way, and which calls are shown a better one."""

from __future__ import annotations

from .key import Key

_SWITCH = ("on", "off")

ROUTING = (
    Key(
        "routing.big_reads",
        "text",
        "on",
        "Show the model a better way than reading a big file whole: the index.",
        choices=_SWITCH,
    ),
    Key(
        "routing.big_reads_bytes",
        "integer",
        64 * 1024,
        "From how many bytes on a file is big.",
        low=1024,
        high=64 * 1024 * 1024,
    ),
    Key(
        "routing.fetches",
        "text",
        "on",
        "Show it `fetch_url` when it fetches a page by a command.",
        choices=_SWITCH,
    ),
    Key(
        "routing.noisy_commands",
        "text",
        "on",
        "Show it `run_batch` when a test runner, build or install would print much.",
        choices=_SWITCH,
    ),
    Key(
        "routing.noisy_programs",
        "texts",
        (),
        "Further programs that print much.",
        words='a list of names of programs, such as ["terragrunt"]',
        adds=True,
    ),
    Key(
        "routing.long_listings",
        "text",
        "on",
        "Show it a bounded way when a command would list without end, such as `git log`.",
        choices=_SWITCH,
    ),
    Key(
        "routing.long_listings_max",
        "integer",
        100,
        "Entries that a listing may ask for by its own limit.",
        low=1,
        high=100_000,
    ),
)

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
