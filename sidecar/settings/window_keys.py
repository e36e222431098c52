"""The settings about the model's window: how much of it each kind of text may take, when a chat is compacted, and
whose instruction rules are sent. They are part of the table in `keys`."""

from __future__ import annotations

from .key import Key

MAX_TOKENS = 10_000_000
"""Several times the largest window that any model has."""

GATES = ("auto", "always", "never")


def _cap(name: str, tokens: int, what: str) -> Key:
    doc = f"Tokens of {what}, at most; more in a window far over 128,000, less in a small one."
    return Key(f"context.{name}", "integer", tokens, doc, low=1, high=MAX_TOKENS)


def _gate(name: str, what: str) -> Key:
    return Key(f"context.gates.{name}", "text", "auto", f"When {what} sent.", choices=GATES)


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
        "Tokens of the window kept for the answer, which is not longer then; 0 keeps a quarter, 8192 at most.",
        high=MAX_TOKENS,
    ),
    _gate("open_files", "the text of open files is"),
    _gate("patches", "the diffs of recorded changes are"),
    _gate("git_diff", "git's diff of the project is"),
    _gate("retrieval", "what is found in the chat's past is"),
)

COMPACTION = (
    Key(
        "compaction.enabled", "flag", True, "Whether a chat is compacted by itself; by hand it can always be."
    ),
    Key(
        "compaction.background",
        "ratio",
        0.80,
        "How full the window is when compaction begins beside the chat.",
    ),
    Key("compaction.blocking", "ratio", 0.95, "How full it is when the next turn waits for compaction."),
    Key("compaction.target", "ratio", 0.40, "How full a compaction leaves it."),
    Key(
        "compaction.keep_turns",
        "integer",
        2,
        "The newest turns, which a compaction leaves as they are.",
        low=1,
        high=100,
    ),
)

RULES = (
    Key("rules.enabled", "flag", True, "Whether instruction rules are read and sent.", project="trusted"),
    Key(
        "rules.paths",
        "paths",
        (),
        "Further files and folders with the user's own rules.",
        project="never",
    ),
)
