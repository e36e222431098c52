"""The files of a project that decide what runs outside of the sandbox, and their content when the project was
trusted.

A record maps each file to the hash of its bytes and to its text, with secrets masked, to show a diff later. It covers
`NAMES` at the top of the project and nested rule folders, of which only those apply whose bytes are in the record.
The target of a link counts as if it were there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from .lazy import lazy_module
from .redact import redact_text
from .safe_open import FileRefused, read_regular

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy_module("difflib")

NAMES = (".sidecar", ".claude", ".mcp.json", ".cursor")
"""Read-only in the sandbox, at the project's top."""

_ROOTS = (".sidecar", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".cursor/rules")
_NESTED = (".sidecar/rules", ".cursor/rules")
_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", "target"))

MAX_FILES = 1000
"""Files of settings and rules; a project with more cannot be trusted."""

MAX_BYTES = 1024 * 1024
"""Bytes of one file; no reader of ours accepts a longer one."""

MAX_FOLDERS = 20_000
"""Folders that are searched for nested rules, once, when the project is trusted."""

MAX_TEXT = 16 * 1024
"""Characters of a file that are stored to show a diff."""

MAX_DIFF = 32 * 1024
"""Characters of all diffs that are shown."""

_STRING = "|".join(
    (
        r'"{3}(?:\\.|[^\\])*?(?:"{3}|\Z)',
        r"'{3}.*?(?:'{3}|\Z)",
        r'"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)',
        r"'[^'\n]*(?:'|(?=\n)|\Z)",
    )
)
"""A string in TOML or JSON; a truncated one ends with its line or the file."""

_VALUE = re.compile(rf"""(?P<key>[\w.-]*["']?)(?P<sign>\s*[=:]\s*)(?P<text>{_STRING})""", re.DOTALL)
"""A name and its string in TOML or JSON."""

_SECRET = re.compile(r"(?i)key|token|secret|passw|auth|credential")
_SECTION = re.compile(r"(?i)(?:\.|\b)(env|headers)\b")
_TABLE = re.compile(r"""(?i)\b(?:env|headers)["']?\s*[=:]\s*\{""")
_QUERY = re.compile(r"""(["']https?://[^?"']*\?)[^"']+""")

TrustRecord = dict[str, tuple[str, str]]
"""Relative path: the hash of its bytes, and its text with secrets masked."""

TrustedChange = tuple[str, str, str]
"""Path, `added` / `changed` / `removed`, and a unified diff."""


class TooMuch(Exception):
    """There are more files, or longer ones, than the limits."""


def make_record(project: str) -> TrustRecord:
    """Return the record of the current files, with nested rules. Blocking; raises TooMuch over the limits."""
    found = dict(_files(project, _ROOTS))
    for seen, (folder, names, _) in enumerate(os.walk(project)):
        if seen >= MAX_FOLDERS:
            break
        if folder != project:
            roots = [f"{os.path.relpath(folder, project)}/{name}" for name in _NESTED]
            found.update(_files(project, [root for root in roots if root.rsplit("/", 2)[-2] in names]))
        # In place: `os.walk` enters what is left in this very list.
        names[:] = [name for name in names if name not in _SKIPPED]
    return {path: (_hash(data), _mask_secrets(data)) for path, data in found.items()}


def matches(project: str, known: TrustRecord) -> bool:
    """Return whether the files at the top of the project equal the record."""
    try:
        now = {path: _hash(data) for path, data in _files(project, _ROOTS)}
    except TooMuch:
        return False
    return now == {path: row[0] for path, row in known.items() if _is_at_top(path)}


def matches_file(project: str, known: TrustRecord, path: str) -> bool:
    """Return whether this one file equals the record."""
    row = known.get(path)
    data = _read(os.path.join(project, path))
    return row is not None and data is not None and _hash(data) == row[0]


def changes_since(project: str, known: TrustRecord) -> list[TrustedChange]:
    """Return what differs now from the record, with diffs of limited length."""
    now = make_record(project)
    found: list[TrustedChange] = []
    space = MAX_DIFF
    for path in sorted({*known, *now}):
        old, new = known.get(path), now.get(path)
        if old and new and old[0] == new[0]:
            continue
        kind = "changed" if old and new else "added" if new else "removed"
        diff = _diff(path, old[1] if old else "", new[1] if new else "")[:space]
        space -= len(diff)
        found.append((path, kind, diff))
    return found


def _is_at_top(path: str) -> bool:
    return any(path == root or path.startswith(root + "/") for root in _ROOTS)


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)


def _files(project: str, roots: tuple[str, ...] | list[str]) -> Iterator[tuple[str, bytes]]:
    count = 0
    for root in roots:
        for path in _beneath(os.path.join(project, root)):
            data = _read(path)
            if data is None:
                continue
            count += 1
            if count > MAX_FILES:
                raise TooMuch(f"more than {MAX_FILES} files in {root}")
            yield os.path.relpath(path, project), data


def _beneath(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    seen: set[str] = set()
    for folder, names, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link that leads back
            names.clear()
            continue
        seen.add(real)
        if len(seen) > MAX_FILES:
            raise TooMuch(f"more than {MAX_FILES} folders in {path}")
        for name in sorted(files):
            yield os.path.join(folder, name)


def _read(path: str) -> bytes | None:
    """Return the bytes; None when the file does not exist. An unreadable file is represented by bytes of its own."""
    try:
        return read_regular(path, MAX_BYTES)
    except FileRefused as refused:
        if isinstance(refused.__cause__, (FileNotFoundError, NotADirectoryError)):
            return None
        if refused.reason == "too_large":
            raise TooMuch(f"{path} is longer than {MAX_BYTES} bytes") from refused
        return f"unreadable: {refused.reason}".encode()


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _mask_secrets(data: bytes) -> str:
    """Return the text without possible secrets: values by their names, all variables and headers, queries of URLs."""
    text = redact_text(data[:MAX_TEXT].decode(errors="replace"))

    def replace(found: re.Match[str]) -> str:
        key, sign, value = found.group("key", "sign", "text")
        if _SECRET.search(key) or _SECTION.search(key) or _is_of_section(text[: found.start()]):
            return f'{key}{sign}"(set)"'
        return f"{key}{sign}{_QUERY.sub(_hide_query, value)}"

    return _VALUE.sub(replace, text)


def _hide_query(found: re.Match[str]) -> str:
    return f"{found.group(1)}(set)"


def _is_of_section(before: str) -> bool:
    """Return whether the next value is in a table of variables or headers, by its heading or within its braces."""
    headings = [line for line in before.splitlines() if line.startswith("[")]
    if headings and _SECTION.search(headings[-1]):
        return True
    tables = list(_TABLE.finditer(before))
    if not tables:
        return False
    plain = re.sub(_STRING, "", before[tables[-1].end() :], flags=re.DOTALL)
    return plain.count("}") <= plain.count("{")
