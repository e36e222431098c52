"""The settings of the context window: the share of each kind of text, when a chat is compacted, and whose instruction
rules are sent. They are part of the table in `keys`.
"""

from __future__ import annotations

from ..system.choices import GATE_SWITCHES
from .key import Key

MAX_TOKENS = 10_000_000
"""Several times the largest context window of any model."""


def _cap(name: str, tokens: int, what: str) -> Key:
    doc = f"Maximum tokens of {what}; more in a context window far over 128,000, less in a small one."
    return Key(f"context.{name}", "integer", tokens, doc, low=1, high=MAX_TOKENS)


def _gate(name: str, what: str) -> Key:
    return Key(f"context.gates.{name}", "text", "auto", f"When {what} sent.", choices=GATE_SWITCHES)


CONTEXT = (
    _cap("per_file", 2000, "one open file"),
    _cap("open_files", 8000, "all open files together"),
    _cap("diffs", 4000, "the diffs of recorded changes"),
    _cap("git_diff", 3000, "git's diff of the project"),
    _cap("retrieval", 2000, "what is found again in the chat's past"),
    _cap("rules", 4000, "instruction rules"),
    Key(
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
    Key(
        "compaction.enabled",
        "flag",
        True,
        "Compact chats automatically; compaction by hand is always possible.",
    ),
    Key(
        "compaction.background",
        "ratio",
        0.80,
        "Share of the window at which compaction starts in the background.",
    ),
    Key(
        "compaction.blocking",
        "ratio",
        0.95,
        "Share of the window at which the next turn waits for compaction.",
    ),
    Key("compaction.target", "ratio", 0.40, "Share of the window that is used after a compaction."),
    Key(
        "compaction.keep_turns",
        "integer",
        2,
        "Number of newest turns that a compaction does not change.",
        low=1,
        high=100,
    ),
)

RULES = (
    Key("rules.enabled", "flag", True, "Read instruction rules and send them."),
    Key(
        "rules.paths",
        "paths",
        (),
        "Further files and folders with the user's own rules.",
        project="never",
    ),
)
