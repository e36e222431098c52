"""Tracks which files tools touched, which calls failed, and which errors a user reported. Tool output is
data: it provides the text of an error, and nothing else of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...model import JsonObject
from ...model.content import Item, Turn
from .reading import message_text
from .shape import (
    MAX_ENTRY_BYTES,
    MAX_ERRORS,
    MAX_FILES,
    MAX_PATH_BYTES,
    READ,
    KnownError,
    TouchedFile,
    clean_text,
    one_line,
)

MAX_OUTPUT = 4_000
"""Characters at the end of an output in which the error is searched: programs print it last."""

MAX_CALL_BYTES = 120
MAX_WHY_BYTES = 140
MAX_PATHS = 10
"""Of one call: one that touched more is a search, not work on a file."""

MAX_NAMED = 4
"""Files that a resolution names."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_ERROR_WORD = re.compile(
    r"error|exception|fail|fatal|panic|denied|not found|no such|cannot|错误|失败|エラー|失敗|fehler|erreur",
    re.IGNORECASE,
)
_CALL = re.compile(r"`([^`]{1,400})`")
_VERBS = {"create": "created", "modify": "changed", "delete": "deleted"}
_REPORTED_ERROR = re.compile(
    r"(?<![\w.])[\w.]{0,100}(?:Error|Exception)\b.{0,200}|(?<!\w)(?:fatal|error)(?:\[E\d{1,6}\])?: .{3,200}"
)


class ToolHistory:
    """Reads tool items in the chat's order, on top of what a summary already contains."""

    def __init__(self, files: Iterable[TouchedFile], errors: Iterable[KnownError]) -> None:
        self._files = {file.path: file for file in files}
        self._errors = {failed_call(trouble.error) or trouble.error: trouble for trouble in errors}
        self._changed_since: dict[str, dict[str, None]] = {}

    @property
    def files(self) -> list[TouchedFile]:
        """Return the files; when there are too many, those only read are dropped first, then the oldest."""
        every = list(self._files.values())
        spare = sorted(every, key=lambda file: not file.why.startswith(READ))[
            : max(0, len(every) - MAX_FILES)
        ]
        gone = {file.path for file in spare}
        return [file for file in every if file.path not in gone]

    @property
    def errors(self) -> list[KnownError]:
        every = list(self._errors.values())
        spare = sorted(every, key=lambda trouble: trouble.resolution is None)[
            : max(0, len(every) - MAX_ERRORS)
        ]
        gone = {trouble.error for trouble in spare}
        return [trouble for trouble in every if trouble.error not in gone]

    def turn(self, turn: Turn) -> None:
        wish = next((text for item in turn.items if item.type == "user" and (text := message_text(item))), "")
        why = one_line(wish, MAX_WHY_BYTES)
        for item in turn.items:
            if item.type == "tool":
                self._call(item, why)

    def add_reported(self, text: str) -> None:
        """Add an error that a user reports; "that worked" refers to the newest one."""
        if found := _REPORTED_ERROR.search(text):
            self._put(error := one_line(found.group()), KnownError(error=error))

    def resolve_newest(self, words: str) -> None:
        """Resolve the newest error, because the user says that it works now."""
        for key, trouble in reversed(self._errors.items()):
            if trouble.resolution is None and not failed_call(trouble.error):
                self._errors[key] = KnownError(
                    error=trouble.error, resolution=f"the user said: {one_line(words)}"
                )
                return

    def _call(self, item: Item, why: str) -> None:
        call = call_name(item)
        if item.status == "failed" or (item.status == "completed" and item.exit_code):
            self._put(call, KnownError(error=one_line(f"`{call}`: {_failure_text(item)}")))
            self._changed_since[call] = {}
        elif item.status == "completed":
            self._touch(item, why)
            if (trouble := self._errors.get(call)) and trouble.resolution is None:
                self._errors[call] = KnownError(error=trouble.error, resolution=self._resolution(call))

    def _touch(self, item: Item, why: str) -> None:
        changed = [(path, _VERBS.get(kind, "changed")) for path, kind in _paths(item.changes)]
        looked = [(path, READ) for path, _ in _paths(item.locations)]
        for path, verb in changed or (looked if item.kind != "search" else []):
            known = self._files.get(path)
            if known and verb == READ and not known.why.startswith(READ):
                continue
            # Removed first, so that the file moves to the position of its last use.
            self._files.pop(path, None)
            self._files[path] = TouchedFile(path=path, why=f"{verb}: {why}" if why else verb)
        for since in self._changed_since.values():
            if len(since) <= MAX_NAMED:
                since.update(dict.fromkeys(path for path, _ in changed))

    def _resolution(self, call: str) -> str:
        names = list(self._changed_since.pop(call, {}))
        if not names:
            return "worked in a later run"
        more = ", …" if len(names) > MAX_NAMED else ""
        return one_line(f"worked after changes to {', '.join(names[:MAX_NAMED])}{more}")

    def _put(self, key: str, trouble: KnownError) -> None:
        self._errors.pop(key, None)
        self._errors[key] = trouble
        if len(self._errors) > 2 * MAX_ERRORS:
            self._errors = {failed_call(one.error) or one.error: one for one in self.errors}
            self._changed_since = {
                call: since for call, since in self._changed_since.items() if call in self._errors
            }


def failed_call(error: str) -> str | None:
    """Return the call that an error begins with."""
    found = _CALL.match(error)
    return found.group(1) if found else None


def call_name(item: Item) -> str:
    """Return a name that is equal for a repeated call."""
    given: JsonObject = item.input if isinstance(item.input, dict) else {}
    for key in ("command", "path", "file_path", "pattern", "query", "url"):
        if isinstance(value := given.get(key), str) and value:
            name = value if key == "command" else f"{item.name or 'tool'} {value}"
            break
    else:
        name = item.title or item.name or "tool"
    return one_line(name, MAX_CALL_BYTES).replace("`", "'") or "tool"


def _failure_text(item: Item) -> str:
    text = _ANSI.sub("", item.output_text[-MAX_OUTPUT:])
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    prose = [line for line in lines if not line.startswith("[")] or lines
    telling = next((line for line in reversed(prose) if _ERROR_WORD.search(line[:MAX_ENTRY_BYTES])), None)
    message = item.error.message if item.error else ""
    words = telling or message or (prose[-1] if prose else "failed")
    return f"exit code {item.exit_code}: {words}" if item.exit_code else words


def _paths(places: Sequence[JsonObject] | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place in (places or [])[:MAX_PATHS]:
        path = place.get("path")
        if isinstance(path, str) and path and len(path.encode(errors="replace")) <= MAX_PATH_BYTES:
            found.append((" ".join(clean_text(path).split()), str(place.get("kind") or "")))
    return [(path, kind) for path, kind in found if path]
