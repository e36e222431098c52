"""Which files the tools touched, which of their calls failed, and which errors a user showed. Output of tools is data:
it gives an error its wording here, and nothing else to a summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...model.content import Item, Turn
from .reading import said
from .shape import (
    MAX_ENTRY_BYTES,
    MAX_ERRORS,
    MAX_FILES,
    MAX_PATH_BYTES,
    READ,
    File,
    Trouble,
    clean,
    one_line,
)

MAX_OUTPUT = 4_000
"""Characters at the end of an output in which the error is looked for: programs end with what went wrong."""

MAX_CALL_BYTES = 120
MAX_WHY_BYTES = 140
MAX_PATHS = 10
"""Of one call: what it touched beyond that is a search, not work on a file."""

MAX_NAMED = 4
"""Files that a resolution names."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_WRONG = re.compile(
    r"error|exception|fail|fatal|panic|denied|not found|no such|cannot|错误|失败|エラー|失敗|fehler|erreur",
    re.IGNORECASE,
)
_CALL = re.compile(r"`([^`]{1,400})`")
_VERBS = {"create": "created", "modify": "changed", "delete": "deleted"}
_REPORTED = re.compile(
    r"(?<![\w.])[\w.]{0,100}(?:Error|Exception)\b.{0,200}|(?<!\w)(?:fatal|error)(?:\[E\d{1,6}\])?: .{3,200}"
)


class Work:
    """Walks tool items in the chat's order, on top of what a summary already knows."""

    def __init__(self, files: Iterable[File], errors: Iterable[Trouble]) -> None:
        self._files = {file.path: file for file in files}
        self._errors = {call_of(trouble.error) or trouble.error: trouble for trouble in errors}
        self._changed_since: dict[str, dict[str, None]] = {}

    @property
    def files(self) -> list[File]:
        """Those only read first to go when there are too many, then the oldest."""
        every = list(self._files.values())
        spare = sorted(every, key=lambda file: not file.why.startswith(READ))[
            : max(0, len(every) - MAX_FILES)
        ]
        gone = {file.path for file in spare}
        return [file for file in every if file.path not in gone]

    @property
    def errors(self) -> list[Trouble]:
        every = list(self._errors.values())
        spare = sorted(every, key=lambda trouble: trouble.resolution is None)[
            : max(0, len(every) - MAX_ERRORS)
        ]
        gone = {trouble.error for trouble in spare}
        return [trouble for trouble in every if trouble.error not in gone]

    def turn(self, turn: Turn) -> None:
        wish = next((text for item in turn.items if item.type == "user" and (text := said(item))), "")
        why = one_line(wish, MAX_WHY_BYTES)
        for item in turn.items:
            if item.type == "tool":
                self._call(item, why)

    def reported(self, text: str) -> None:
        """An error that a user shows; the newest one is what "that worked" is about."""
        if found := _REPORTED.search(text):
            self._put(error := one_line(found.group()), Trouble(error=error))

    def solved(self, words: str) -> None:
        """The user says that it works now."""
        for key, trouble in reversed(self._errors.items()):
            if trouble.resolution is None and not call_of(trouble.error):
                self._errors[key] = Trouble(
                    error=trouble.error, resolution=f"the user said: {one_line(words)}"
                )
                return

    def _call(self, item: Item, why: str) -> None:
        call = call_name(item)
        if item.status == "failed" or (item.status == "completed" and item.exit_code):
            self._put(call, Trouble(error=one_line(f"`{call}`: {_what_went_wrong(item)}")))
            self._changed_since[call] = {}
        elif item.status == "completed":
            self._touch(item, why)
            if (trouble := self._errors.get(call)) and trouble.resolution is None:
                self._errors[call] = Trouble(error=trouble.error, resolution=self._resolution(call))

    def _touch(self, item: Item, why: str) -> None:
        changed = [(path, _VERBS.get(kind, "changed")) for path, kind in _paths(item.changes)]
        looked = [(path, READ) for path, _ in _paths(item.locations)]
        for path, verb in changed or (looked if item.kind != "search" else []):
            known = self._files.get(path)
            if known and verb == READ and not known.why.startswith(READ):
                continue
            # Taken out first, so that the file stands where it was touched last.
            self._files.pop(path, None)
            self._files[path] = File(path=path, why=f"{verb}: {why}" if why else verb)
        for since in self._changed_since.values():
            if len(since) <= MAX_NAMED:
                since.update(dict.fromkeys(path for path, _ in changed))

    def _resolution(self, call: str) -> str:
        names = list(self._changed_since.pop(call, {}))
        if not names:
            return "worked in a later run"
        more = ", …" if len(names) > MAX_NAMED else ""
        return one_line(f"worked after changes to {', '.join(names[:MAX_NAMED])}{more}")

    def _put(self, key: str, trouble: Trouble) -> None:
        self._errors.pop(key, None)
        self._errors[key] = trouble
        if len(self._errors) > 2 * MAX_ERRORS:
            self._errors = {call_of(one.error) or one.error: one for one in self.errors}
            self._changed_since = {
                call: since for call, since in self._changed_since.items() if call in self._errors
            }


def call_of(error: str) -> str | None:
    """The call that an error begins with."""
    found = _CALL.match(error)
    return found.group(1) if found else None


def call_name(item: Item) -> str:
    """The same for the same call made again."""
    given: dict[str, Any] = item.input if isinstance(item.input, dict) else {}
    for key in ("command", "path", "file_path", "pattern", "query", "url"):
        if isinstance(value := given.get(key), str) and value:
            name = value if key == "command" else f"{item.name or 'tool'} {value}"
            break
    else:
        name = item.title or item.name or "tool"
    return one_line(name, MAX_CALL_BYTES).replace("`", "'") or "tool"


def _what_went_wrong(item: Item) -> str:
    output = (item.output or {}).get("text")
    text = _ANSI.sub("", output[-MAX_OUTPUT:]) if isinstance(output, str) else ""
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    prose = [line for line in lines if not line.startswith("[")] or lines
    telling = next((line for line in reversed(prose) if _WRONG.search(line[:MAX_ENTRY_BYTES])), None)
    message = (item.error or {}).get("message")
    words = telling or (message if isinstance(message, str) else None) or (prose[-1] if prose else "failed")
    return f"exit code {item.exit_code}: {words}" if item.exit_code else words


def _paths(places: Sequence[dict[str, Any]] | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place in (places or [])[:MAX_PATHS]:
        path = place.get("path")
        if isinstance(path, str) and path and len(path.encode(errors="replace")) <= MAX_PATH_BYTES:
            found.append((" ".join(clean(path).split()), str(place.get("kind") or "")))
    return [(path, kind) for path, kind in found if path]
