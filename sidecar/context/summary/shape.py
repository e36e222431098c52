"""What a summary holds, its bounds, and its Markdown. Does not know where the parts come from or which go first."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.content import Value

MAX_GOAL_BYTES = 1500
"""About 500 tokens in any script: a wish that was typed, or both ends of one that came with a pasted text."""

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
"""Entries kept, before the tokens are counted: more than fit the few thousand tokens that a summary is given."""

READ = "read"
"""How a file's `why` begins when it was only looked at."""


class File(Value, kw_only=True, frozen=True):
    path: str
    why: str = ""


class Trouble(Value, kw_only=True, frozen=True):
    """An error; the command that failed stands first, between backticks. Without a resolution it is still there."""

    error: str
    resolution: str | None = None


class Fact(Value, kw_only=True, frozen=True):
    text: str
    turn_id: str


class Said(Value, kw_only=True, frozen=True):
    """A message of the user, in its own words; cut in the middle when it was long."""

    turn_id: str
    text: str


class Summary(Value, kw_only=True, frozen=True):
    """`goal` is the user's first wish, verbatim. All lists are in the chat's order; `up_to` is the last turn within."""

    goal: str = ""
    constraints: list[str] = []
    decisions: list[str] = []
    tasks: list[str] = []
    files: list[File] = []
    errors: list[Trouble] = []
    facts: list[Fact] = []
    said: list[Said] = []
    up_to: str = ""


def rendered(summary: Summary) -> str:
    """Markdown for a model. Turn ids are left out: they cost more tokens than they tell a model."""
    sections = [
        ("Goal, in the user's words", [summary.goal] if summary.goal else []),
        ("Constraints", map(line, summary.constraints)),
        ("Decisions", map(line, summary.decisions)),
        ("Open tasks", map(line, summary.tasks)),
        ("Files", map(line, summary.files)),
        ("Errors", map(line, summary.errors)),
        ("Facts", map(line, summary.facts)),
        ("What the user said, newest last", map(line, summary.said)),
    ]
    return "\n\n".join(text for title, lines in sections if (text := _section(title, lines)))


def line(entry: str | File | Trouble | Fact | Said) -> str:
    """An entry as it stands in its section."""
    if isinstance(entry, File):
        return _item(f"`{entry.path}`: {entry.why}" if entry.why else f"`{entry.path}`")
    if isinstance(entry, Trouble):
        return _item(f"{entry.error} → {entry.resolution}" if entry.resolution else entry.error)
    return _item(entry if isinstance(entry, str) else entry.text)


def clean(text: str) -> str:
    """Without halves of surrogate pairs, which no JSON can carry, and without NUL."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")


def one_line(text: str, max_bytes: int = MAX_ENTRY_BYTES) -> str:
    """The text with single blanks between its words, cut at its end when it is longer."""
    # No more can be left than a code point for each byte, so a huge text is not walked; blanks may be many.
    flat = " ".join(clean(text[: 8 * max_bytes]).split())
    return flat if len(flat.encode()) <= max_bytes else _head(flat, max_bytes - len("…".encode())) + "…"


def both_ends(text: str, max_bytes: int) -> str:
    """The text as it is, or its two ends around a mark: what is asked stands before or after what is pasted."""
    text = clean(text if len(text) <= 2 * max_bytes else text[:max_bytes] + text[-max_bytes:]).strip()
    if len(text.encode()) <= max_bytes:
        return text
    mark = "\n[…]\n"
    room = max_bytes - len(mark.encode())
    tail = text.encode()[-(room // 3) :].decode(errors="ignore")
    return _head(text, room - room // 3).rstrip() + mark + tail.lstrip()


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"## {title}\n{body}" if body else ""


def _item(text: str) -> str:
    # Further lines are indented, so a heading within a message is none of the summary's.
    return "- " + "\n  ".join(text.splitlines())


def _head(text: str, max_bytes: int) -> str:
    return text.encode()[: max(0, max_bytes)].decode(errors="ignore")
