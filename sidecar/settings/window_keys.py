"""The settings of the context window: the share of each kind of text, when a chat is compacted, and whose instruction
rules are sent. They are part of the table in `keys`.
"""

from __future__ import annotations

from ..system.choices import GATE_SWITCHES
from .key import SettingKey

MAX_TOKENS = 10_000_000
"""Several times the largest context window of any model."""


def _cap(name: str, tokens: int, what: str) -> SettingKey:
    doc = f"Maximum tokens of {what}; more in a context window far over 128,000, less in a small one."
    return SettingKey(f"context.{name}", "integer", tokens, doc, low=1, high=MAX_TOKENS)


def _gate(name: str, what: str) -> SettingKey:
    return SettingKey(f"context.gates.{name}", "text", "auto", f"When {what} sent.", choices=GATE_SWITCHES)


CONTEXT = (
    _cap("per_file", 2000, "one open file"),
    _cap("open_files", 8000, "all open files together"),
    _cap("diffs", 4000, "the diffs of recorded changes"),
    _cap("git_diff", 3000, "git's diff of the project"),
    _cap("retrieval", 2000, "what is found again in the chat's past"),
    _cap("rules", 4000, "instruction rules"),
    SettingKey(
        "context.output_reserve",
        "integer",
        0,
        "Tokens reserved for the answer, and its maximum length; 0 reserves a quarter of the window, at most 8192.",
        high=MAX_TOKENS,
    ),
    _gate("open_files", "the text of open files is"),
    _gate("patches", "the diffs of recorded changes are"),
    _gate("git_diff", "git's diff of the project is"),
    _gate("retrieval", "what is found in the chat's past is"),
)

COMPACTION = (
    SettingKey(
        "compaction.enabled",
        "flag",
        True,
        "Compact chats automatically; compaction by hand is always possible.",
    ),
    SettingKey(
        "compaction.background",
        "ratio",
        0.80,
        "Share of the window at which compaction starts in the background.",
    ),
    SettingKey(
        "compaction.blocking",
        "ratio",
        0.95,
        "Share of the window at which the next turn waits for compaction.",
    ),
    SettingKey("compaction.target", "ratio", 0.40, "Share of the window that is used after a compaction."),
    SettingKey(
        "compaction.keep_turns",
        "integer",
        2,
        "Number of newest turns that a compaction does not change.",
        low=1,
        high=100,
    ),
)

RULES = (
    SettingKey("rules.enabled", "flag", True, "Read instruction rules and send them."),
    SettingKey(
        "rules.paths",
        "paths",
        (),
        "Further files and folders with the user's own rules.",
        project="never",
    ),
)
