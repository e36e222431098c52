"""Keys of `[hooks]` and `[routing]`: programs that run at points of a turn, and calls that are redirected."""

from __future__ import annotations

from .key import SettingKey

_SWITCH = ("on", "off")

ROUTING = (
    SettingKey(
        "routing.big_reads",
        "text",
        "on",
        "Redirect a read of a whole large file to the index.",
        choices=_SWITCH,
    ),
    SettingKey(
        "routing.big_reads_bytes",
        "integer",
        64 * 1024,
        "Size in bytes from which a file is large.",
        low=1024,
        high=64 * 1024 * 1024,
    ),
    SettingKey(
        "routing.fetches",
        "text",
        "on",
        "Redirect a command that fetches a page to `fetch_url`.",
        choices=_SWITCH,
    ),
    SettingKey(
        "routing.noisy_commands",
        "text",
        "on",
        "Redirect test runners, builds and installs with much output to `run_batch`.",
        choices=_SWITCH,
    ),
    SettingKey(
        "routing.noisy_programs",
        "texts",
        (),
        "Further programs with much output.",
        words='a list of names of programs, such as ["terragrunt"]',
        adds=True,
    ),
    SettingKey(
        "routing.long_listings",
        "text",
        "on",
        "Redirect a listing without a limit, such as `git log`, to a tool with a limit.",
        choices=_SWITCH,
    ),
    SettingKey(
        "routing.long_listings_max",
        "integer",
        100,
        "Maximum limit of a listing that is not redirected.",
        low=1,
        high=100_000,
    ),
)

HOOKS = (
    SettingKey("hooks.enabled", "flag", True, "Run hooks."),
    SettingKey(
        "hooks.claude_settings",
        "flag",
        False,
        "Run hooks of Claude Code's settings files too, the user's and a trusted project's.",
        project="never",
    ),
    SettingKey(
        "hooks.paths",
        "paths",
        (),
        "Further files with the user's own hooks, such as a plugin's `hooks/hooks.json`.",
        project="never",
    ),
)
