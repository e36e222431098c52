"""Compares the bytes of a file before and after: as a diff for display, as a patch for `git apply`, and as a
short summary.

Pure. Only the byte `\\n` ends a line, so that changes of line ends, of a byte order mark or of the last
line's end are visible. `unified_diff` decodes each side by its own encoding, for reading; `git_patch` has the
exact bytes. Does not know where the bytes come from.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence

import msgspec

from .lines import Region, changed_regions
from .text import NotText, decode_text, split_lines

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
ESCAPES = {char: letter.encode() for char, letter in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}
_MARKER_BYTES = 100
"""Space for the line that counts what is hidden, with numbers of any length."""


class Diff(msgspec.Struct, frozen=True):
    """A unified diff as text, which is "" for binary files, and how many lines it adds and removes."""

    text: str
    added: int
    removed: int
    binary: bool


def unified_diff(path: str, before: bytes | None, after: bytes | None) -> Diff:
    """Return the diff that people and models read."""
    if before == after:
        return Diff("", 0, 0, False)
    try:
        old, new = _Side(before), _Side(after)
    except NotText:
        return Diff("", 0, 0, True)
    prefixes = ("", "") if path.startswith("/") else ("a/", "b/")
    names = [quote_path(prefix + path, ascii_only=False).decode() for prefix in prefixes]
    out = [f"--- {names[0] if before is not None else '/dev/null'}\n"]
    out.append(f"+++ {names[1] if after is not None else '/dev/null'}\n")
    regions = changed_regions(old.lines, new.lines)
    for hunk in _group_regions(regions):
        out.append(_header(hunk, len(old.lines), len(new.lines)))
        for sign, line in _hunk_lines(hunk, old.lines, new.lines):
            shown = (old if sign == b"-" else new).decode_line(line)
            out.append(sign.decode() + shown + ("" if shown.endswith("\n") else f"\n{NO_NEWLINE}\n"))
    return Diff("".join(out), *_counts(regions), False)


def git_patch(path: str, before: bytes | None, after: bytes | None, mode: int = 0o644) -> bytes:
    """Return a patch for `git apply`; b"" when nothing differs. Of `mode`, git stores whether the file is
    executable."""
    if before == after:
        return b""
    kind = b"100755" if mode & 0o111 else b"100644"
    a, b = (quote_path(prefix + path, ascii_only=True) for prefix in ("a/", "b/"))
    out = [b"diff --git %s %s\n" % (a, b)]
    if before is None:
        out.append(b"new file mode %s\n" % kind)
    elif after is None:
        out.append(b"deleted file mode %s\n" % kind)
    same = b" " + kind if before is not None and after is not None else b""
    out.append(b"index %s..%s%s\n" % (_blob_name(before), _blob_name(after), same))
    if b"\0" in (before or b"") or b"\0" in (after or b""):
        # The second literal is the reverse, so that `git apply -R` works too.
        return b"".join(
            [*out, b"GIT binary patch\n", _binary_literal(after or b""), _binary_literal(before or b"")]
        )
    hunks = list(_git_hunks(before or b"", after or b""))
    if hunks:
        # git ends a name that contains a space with a tab, because a date could follow.
        a, b = (name + b"\t" if b" " in name else name for name in (a, b))
        out.append(b"--- %s\n" % (b"/dev/null" if before is None else a))
        out.append(b"+++ %s\n" % (b"/dev/null" if after is None else b))
    return b"".join(out + hunks)


def summary(before: bytes | None, after: bytes | None) -> str:
    """Summarise the change in a few words."""
    diff = unified_diff("", before, after)
    if diff.binary:
        return f"Binary: {len(before or b'')} -> {len(after or b'')} bytes"
    if before is None:
        return f"New file: {_count_text(diff.added, 'line')}"
    if after is None:
        return f"Deleted: {_count_text(diff.removed, 'line')}"
    return f"-{diff.removed}, +{diff.added} lines"


def clip_diff(text: str, max_bytes: int) -> tuple[str, bool]:
    """Return as many whole hunks of a unified diff as fit, then a line that counts what is hidden, and
    whether anything is.

    A first hunk that is too long is cut to a shorter one, with correct line numbers. The last line is always
    included, even if `max_bytes` is less than its length.
    """
    if _size(text) <= max_bytes:
        return text, False
    pieces = list(_pieces(text))
    space = max_bytes - _MARKER_BYTES
    fits = 0
    while fits < len(pieces) and (space := space - pieces[fits].size) >= 0:
        fits += 1
    shown, hidden = pieces[:fits], pieces[fits:]
    if hidden and hidden[0].body and not any(piece.body for piece in shown):
        start, hidden[0] = _split_hunk(hidden[0], space + hidden[0].size)
        shown.append(start)
    lines = [line for piece in hidden for line in piece.body]
    removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    hunks = sum(bool(piece.body) for piece in hidden)
    what = f"{_count_text(len(lines), 'line')} of {_count_text(hunks, 'hunk')}"
    marker = f"… {what} hidden (-{removed}, +{added})\n"
    return "".join(piece.text for piece in shown) + marker, True


def parse_hunk_header(line: str) -> tuple[int, int, int, int] | None:
    """Return start and count of the old and of the new lines from a hunk's first line; None when it is not
    one."""
    found = _HUNK.match(line)
    if found is None:
        return None
    old, old_count, new, new_count = found.groups(default="1")
    return int(old), int(old_count), int(new), int(new_count)


def quote_path(name: str, *, ascii_only: bool) -> bytes:
    """Quote a file's name as git does: in quotes if it has control characters, quotes or a backslash.

    Bytes that are not UTF-8 are quoted too, and with `ascii_only` all that are not ASCII.
    """
    out = []
    for char in name:
        data = os.fsencode(char)
        plain = char.isascii() or not (ascii_only or "\ud800" <= char <= "\udfff")
        if char in ESCAPES:
            out.append(b"\\" + ESCAPES[char])
        elif not plain or data < b" " or char == "\x7f":
            out.append(b"".join(b"\\%03o" % byte for byte in data))
        else:
            out.append(data)
    whole = b"".join(out)
    return whole if whole == os.fsencode(name) else b'"%s"' % whole


class _Side:
    """The lines of one side, and their encoding. A byte order mark is part of the first line."""

    def __init__(self, data: bytes | None) -> None:
        file = decode_text(data or b"")
        self._encoding = file.encoding
        if file.encoding.startswith("utf-16"):
            # In these encodings the byte `\n` is also half of other characters.
            lines = [line.encode(file.encoding) for line in split_lines(file.text)]
            self.lines = [file.bom + lines[0], *lines[1:]] if lines else [file.bom]
        else:
            self.lines = _split(data or b"")

    def decode_line(self, line: bytes) -> str:
        return line.decode(self._encoding)


class _DiffPiece(msgspec.Struct):
    """A hunk of a diff or, without a body, what precedes one."""

    head: str
    body: list[str] = []

    @property
    def text(self) -> str:
        return self.head + "".join(self.body)

    @property
    def size(self) -> int:
        return _size(self.text)


def _pieces(text: str) -> Iterator[_DiffPiece]:
    """Split a diff into hunks by their counts: a removed line `-- x` appears in a hunk as `--- x` and starts
    no file."""
    lines = iter(split_lines(text))
    line = next(lines, None)
    while line is not None:
        piece = _DiffPiece(line)
        numbers = parse_hunk_header(line)
        line = next(lines, None)
        if numbers:
            old, new = numbers[1], numbers[3]
            while line is not None and (old > 0 or new > 0 or line.startswith("\\")):
                piece.body.append(line)
                old -= line[0] in " -"
                new -= line[0] in " +"
                line = next(lines, None)
        yield piece


def _split_hunk(hunk: _DiffPiece, space: int) -> tuple[_DiffPiece, _DiffPiece]:
    """Return the hunk's first lines as a hunk of their own, and the rest."""
    numbers = parse_hunk_header(hunk.head)
    assert numbers is not None
    body: list[str] = []
    space -= _size(hunk.head)  # The counts become smaller, never longer.
    for line in hunk.body:
        space -= _size(line)
        if space < 0:
            break
        body.append(line)
    if not body:
        return _DiffPiece(""), hunk
    old, new = (sum(line[0] in signs for line in body) for signs in (" -", " +"))
    head = f"@@ -{numbers[0]},{old} +{numbers[2]},{new} @@\n"
    return _DiffPiece(head, body), _DiffPiece("", hunk.body[len(body) :])


def _group_regions(regions: Sequence[Region]) -> Iterator[list[Region]]:
    """Group regions whose context would overlap into one hunk."""
    group: list[Region] = []
    for region in regions:
        if group and region[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(region)
    if group:
        yield group


def _header(hunk: list[Region], olds: int, news: int) -> str:
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT, first[0])
    trail = min(CONTEXT, olds - last[1])
    old = _range(first[0] - lead, last[1] + trail)
    new = _range(first[2] - lead, last[3] + trail)
    return f"@@ -{old} +{new} @@\n"


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _hunk_lines(hunk: list[Region], old: list[bytes], new: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    at = max(0, hunk[0][0] - CONTEXT)
    for old_from, old_to, new_from, new_to in hunk:
        yield from ((b" ", line) for line in old[at:old_from])
        yield from ((b"-", line) for line in old[old_from:old_to])
        yield from ((b"+", line) for line in new[new_from:new_to])
        at = old_to
    yield from ((b" ", line) for line in old[at : at + CONTEXT])


def _git_hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    old, new = _split(before), _split(after)
    for hunk in _group_regions(changed_regions(old, new)):
        yield _header(hunk, len(old), len(new)).encode()
        for sign, line in _hunk_lines(hunk, old, new):
            yield sign + line + (b"" if line.endswith(b"\n") else f"\n{NO_NEWLINE}\n".encode())


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _counts(regions: Sequence[Region]) -> tuple[int, int]:
    return sum(to - start for _, _, start, to in regions), sum(to - start for start, to, _, _ in regions)


def _blob_name(data: bytes | None) -> bytes:
    """Return git's object id of the content, which a binary patch requires."""
    if data is None:
        return b"0" * 40

    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest().encode()


def _binary_literal(data: bytes) -> bytes:
    """The content in git's letters: 52 bytes of deflated data a line, after a letter for their number."""
    packed = zlib.compress(data)
    out = [b"literal %d\n" % len(data)]
    for at in range(0, len(packed), 52):
        part = packed[at : at + 52]
        length = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[len(part) - 1 : len(part)]
        out.append(length + base64.b85encode(part, pad=True) + b"\n")
    return b"".join([*out, b"\n"])


def _count_text(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
