"""Divides a text into searchable chunks at natural borders, never inside a code point. Pure.

Code is divided by definition and Markdown by heading, with the enclosing names as the title; JSON by key
path; command output by lines that start a section or a failure; everything else between paragraphs, and
between lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..context.excerpts.languages import language_of
from ..context.excerpts.outline import Definition, outline
from ..model.index import IndexChunk, SourceKind
from .json_paths import Border, json_sections

CHUNK_BYTES = 4 * 1024

MAX_TITLE = 160
"""Code points of a title: a longer one is a line of text."""

MAX_OUTLINED = 2 * 1024 * 1024
"""Code points of a text whose definitions are searched; a longer one is data."""

SMALL = 256
"""Code points: a failure starts a chunk of its own only when that much precedes it."""

BREADCRUMB_SEPARATOR = " › "

# Lines that start a section, with a group per depth. A section extends to the next line that is not deeper.
_HEAD = re.compile(
    r"\n(?:(?P<top>commit [0-9a-f]{7,64}\b.*|={3,} .+ ={3,}|##\[(?:group|section)\].*|==> .+ <==)"
    r"|(?P<part>diff --git .*|[-_]{3,} .+ [-_]{3,})"
    r"|(?P<failure>Traceback \(most recent call last\).*|(?:FAIL|FAILED|ERROR|error|Error|panic)\b.{0,3}[: ].*"
    r"|thread '.{1,200}' panicked.*|Exception in thread .*|make(?:\[\d+\])?: \*\*\* .*))(?=\r?(?:\n|\Z))"
)
_DEPTHS = {"top": 0, "part": 1, "failure": 2}
_HEADING = re.compile(r"(?m)^#{2,6} \S")


def chunks(
    text: str, *, kind: SourceKind = "text", path: str | None = None, max_bytes: int = CHUNK_BYTES
) -> Iterator[IndexChunk]:
    """Return the whole text in order, in chunks of at most `max_bytes` bytes of UTF-8."""
    borders = _borders(text, kind, path, max_bytes)
    line = 1
    for border, after in pairwise([*borders, Border(len(text), "")]):
        for start, end in _divide_section(
            text, border.start, after.start, max_bytes, headed=bool(border.title)
        ):
            newlines = text.count("\n", start, end)
            ended = end > start and text[end - 1] == "\n"
            yield IndexChunk(start, end, (line, line + newlines - ended), border.title)
            line += newlines


def _borders(text: str, kind: SourceKind, path: str | None, max_bytes: int) -> list[Border]:
    """Return where sections begin, the first at the beginning of the text."""
    found = (
        json_sections(text, max_bytes)
        or _definition_borders(text, path or ("page.md" if _is_markdown(text, kind) else ""))
        or _output_borders(text)
    )
    if not found or found[0].start > 0:
        found.insert(0, Border(0, ""))
    return found


def _is_markdown(text: str, kind: SourceKind) -> bool:
    return kind == "page" or (kind != "file" and len(_HEADING.findall(text, 0, 20_000)) >= 3)


def _definition_borders(text: str, path: str) -> list[Border]:
    """Return the borders of definitions or headings, if the language is known; after the end of one, the
    enclosing one continues."""
    if not path or language_of(path) is None or len(text) > MAX_OUTLINED:
        return []
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    definitions = outline(lines, path).definitions
    titles = [_breadcrumb(definitions, at) for at in range(len(definitions))]
    made: dict[int, str] = {}
    for one in definitions:
        behind = min(starts[one.last + 1], len(text))
        made[behind] = titles[one.parent] if one.parent >= 0 else ""
    for at, one in enumerate(definitions):
        made[starts[one.first]] = titles[at]
    ordered = [*sorted(made), len(text)]
    # Blank lines after a definition stay with it.
    return [Border(start, made[start]) for start, end in pairwise(ordered) if text[start:end].strip()]


def _breadcrumb(definitions: Sequence[Definition], at: int) -> str:
    names: list[str] = []
    while at >= 0:
        names.append(definitions[at].name)
        at = definitions[at].parent
    return BREADCRUMB_SEPARATOR.join(reversed(names))[:MAX_TITLE]


def _output_borders(text: str) -> list[Border]:
    """Return the borders of sections in the output of a command."""
    borders: list[Border] = []
    above: list[tuple[int, str]] = []
    begun = _HEAD.match("\n" + text[:1000])
    heads = [(0, begun)] if begun else []
    heads += [(found.start() + 1, found) for found in _HEAD.finditer(text)]
    for start, found in heads:
        depth = _DEPTHS[found.lastgroup or "failure"]
        if depth == 2 and start - (borders[-1].start if borders else 0) < SMALL:
            continue
        above = [entry for entry in above if entry[0] < depth] + [(depth, found[0].strip("\n\r=_- "))]
        borders.append(Border(start, BREADCRUMB_SEPARATOR.join(name for _, name in above)[:MAX_TITLE]))
    return borders


def _divide_section(
    text: str, start: int, end: int, max_bytes: int, *, headed: bool
) -> Iterator[tuple[int, int]]:
    """Divide a section: one with a title stays whole if it is small enough; others are divided at about half
    the limit."""
    soft = max_bytes // 2
    while start < end:
        most = max_bytes if headed else soft
        if end - start <= most and _fits(text, start, end, max_bytes):
            yield start, end
            return
        cut = _cut(text, start, soft, min(end, start + max_bytes))
        while not _fits(text, start, cut, max_bytes):
            cut = _cut(text, start, (cut - start) // 2, start + (cut - start) // 2)
        yield start, cut
        start, headed = cut, False


def _fits(text: str, start: int, end: int, max_bytes: int) -> bool:
    if (end - start) * 4 <= max_bytes:
        return True
    return end - start <= max_bytes and len(text[start:end].encode()) <= max_bytes


def _cut(text: str, start: int, soft: int, end: int) -> int:
    """Return where the chunk that begins at `start` ends: after a paragraph, before an unindented line, after
    a line, between words; anywhere only in a text without these."""
    low, high = start + soft // 2, min(start + soft, end)
    for sign, tries in (("\n\n", 4), ("\n", 24)):
        at = high
        for _ in range(tries):
            at = text.rfind(sign, low, at)
            if at < 0:
                break
            after = at + len(sign)
            if not text[after : after + 1].isspace():
                return after
    line = text.rfind("\n", low, high) + 1 or text.find("\n", high, end) + 1
    return line or text.rfind(" ", low, high) + 1 or high
