"""The shape of a summary, its bounds, and its Markdown. Does not know where the parts come from or which
matter most."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.content import JournalValue
from ...text.surrogates import well_formed

MAX_GOAL_BYTES = 1500
"""About 500 tokens in any script: a typed request, or both ends of one with pasted text."""

MAX_SAID_BYTES = 600
MAX_ENTRY_BYTES = 320
MAX_PATH_BYTES = 400
"""Of one message, of any other entry (a long sentence), of a file's path."""

MAX_SAID = 200
MAX_DECISIONS = 40
MAX_CONSTRAINTS = 24
MAX_TASKS = 40
MAX_FILES = 60
MAX_ERRORS = 30
MAX_FACTS = 60
"""Stored entries, before tokens are counted: more than fit the few thousand tokens of a summary."""

READ = "read"
"""How a file's `why` begins when it was only read."""


class TouchedFile(JournalValue, kw_only=True, frozen=True):
    path: str
    why: str = ""


class KnownError(JournalValue, kw_only=True, frozen=True):
    """An error, starting with the failed command in backticks. Without a resolution it still exists."""

    error: str
    resolution: str | None = None


class Fact(JournalValue, kw_only=True, frozen=True):
    text: str
    turn_id: str


class UserQuote(JournalValue, kw_only=True, frozen=True):
    """A message of the user, verbatim; cut in the middle when it was long."""

    turn_id: str
    text: str


class Summary(JournalValue, kw_only=True, frozen=True):
    """`goal` is the user's first request, verbatim. All lists are in the chat's order; `up_to` is the last
    covered turn."""

    goal: str = ""
    constraints: list[str] = []
    decisions: list[str] = []
    tasks: list[str] = []
    files: list[TouchedFile] = []
    errors: list[KnownError] = []
    facts: list[Fact] = []
    said: list[UserQuote] = []
    up_to: str = ""


def render_summary(summary: Summary) -> str:
    """Render Markdown for a model. Turn ids are omitted: they cost tokens and mean nothing to a model."""
    sections = [
        ("Goal, in the user's words", [summary.goal] if summary.goal else []),
        ("Constraints", map(entry_line, summary.constraints)),
        ("Decisions", map(entry_line, summary.decisions)),
        ("Open tasks", map(entry_line, summary.tasks)),
        ("Files", map(entry_line, summary.files)),
        ("Errors", map(entry_line, summary.errors)),
        ("Facts", map(entry_line, summary.facts)),
        ("What the user said, newest last", map(entry_line, summary.said)),
    ]
    return "\n\n".join(text for title, lines in sections if (text := _section(title, lines)))


def entry_line(entry: str | TouchedFile | KnownError | Fact | UserQuote) -> str:
    """Render an entry for its section."""
    if isinstance(entry, TouchedFile):
        return _item(f"`{entry.path}`: {entry.why}" if entry.why else f"`{entry.path}`")
    if isinstance(entry, KnownError):
        return _item(f"{entry.error} → {entry.resolution}" if entry.resolution else entry.error)
    return _item(entry if isinstance(entry, str) else entry.text)


def clean_text(text: str) -> str:
    """Remove halves of surrogate pairs, which JSON cannot encode, and NUL."""
    return well_formed(text).replace("\0", "")


def one_line(text: str, max_bytes: int = MAX_ENTRY_BYTES) -> str:
    """Return the text with single spaces between its words, cut at its end when it is longer."""
    # At most one code point per byte can remain, so a huge text is not processed whole; there may be many
    # spaces.
    flat = " ".join(clean_text(text[: 8 * max_bytes]).split())
    return flat if len(flat.encode()) <= max_bytes else _head(flat, max_bytes - len("…".encode())) + "…"


def both_ends(text: str, max_bytes: int) -> str:
    """Return the text, or its two ends around a mark: the question is before or after what is pasted."""
    text = clean_text(text if len(text) <= 2 * max_bytes else text[:max_bytes] + text[-max_bytes:]).strip()
    if len(text.encode()) <= max_bytes:
        return text
    mark = "\n[…]\n"
    space = max_bytes - len(mark.encode())
    tail = text.encode()[-(space // 3) :].decode(errors="ignore")
    return _head(text, space - space // 3).rstrip() + mark + tail.lstrip()


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"## {title}\n{body}" if body else ""


def _item(text: str) -> str:
    # Further lines are indented, so a heading within a message is not taken for one of the summary.
    return "- " + "\n  ".join(text.splitlines())


def _head(text: str, max_bytes: int) -> str:
    return text.encode()[: max(0, max_bytes)].decode(errors="ignore")
