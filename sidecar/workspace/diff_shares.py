"""Divides the space for a diff of many files among them, so that a huge file does not hide the others. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .diff import clip_diff

MIN_SHARE = 240
"""Bytes of a file's part: its header, and the line that counts what is hidden. With less, it is only counted."""

_NEXT_FILE = re.compile(r"(?m)^(?=diff --)")
"""No line of a hunk begins with a letter."""


def clip_files(text: str, max_bytes: int) -> tuple[str, bool]:
    """Return a diff within `max_bytes`, and whether anything is hidden: every file gets the same share, and what
    one does not use goes to the others. Each part is cut as by `clip_diff`."""
    if _size(text) <= max_bytes:
        return text, False
    files = split_files(text)
    sizes = [_size(file) for file in files]
    most = max(1, max_bytes // MIN_SHARE)
    # The smallest first: more files can be seen.
    chosen = sorted(sorted(range(len(files)), key=sizes.__getitem__)[:most])
    limit = share_limit([sizes[at] for at in chosen], max_bytes)
    parts = [clip_diff(files[at], limit)[0] for at in chosen]
    hidden = len(files) - len(chosen)
    if hidden:
        parts.append(f"… the changes of {hidden} more file{'s' if hidden > 1 else ''} hidden\n")
    return "".join(parts), True


def split_files(text: str) -> list[str]:
    """Return the parts of a diff, each of one file."""
    return [part for part in _NEXT_FILE.split(text) if part.strip()]


def share_limit(sizes: Sequence[int], space: int) -> int:
    """Return the most that one may take so that all together take no more than `space`."""
    for at, size in enumerate(ordered := sorted(sizes)):
        share = space // (len(ordered) - at)
        if size > share:
            return share
        space -= size
    return max(sizes, default=0)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
