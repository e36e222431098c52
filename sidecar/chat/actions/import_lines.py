"""Decodes an import line by line and within limits. Pure: does no IO, and stores no line."""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec

from ...model import JsonObject
from ...model.content import Item, Turn
from ...model.failures import Refused
from ...model.files import Patch
from ...model.limits import MAX_TEXT_BYTES, is_too_long
from ...text.json_depth import is_deeper

MAX_LINES = 2_000_000
"""A chat of forty years with a hundred messages per day has fewer."""

MAX_LINE_BYTES = 16 * 1024 * 1024
"""For a line that is not a blob: a turn with everything in it."""

MAX_BLOB_LINE_BYTES = 48 * 1024 * 1024
"""Base64 of the largest attachment, and as much again."""

MAX_DEPTH = 100
"""Nested brackets. Each level costs a parser stack, here and in every client."""

MAX_TURNS = 1_000_000
MAX_ITEMS = 10_000
"""Of one turn: a turn is read and shown as a whole."""

MAX_BLOBS = 100_000
MAX_PATCHES = 100_000
MAX_OPEN_FILES = 1000
MAX_ID_BYTES = 512
"""The limit of a `promptId`."""

HINT = 'A plain turn is {"role":"user","text":"…"} or {"role":"assistant","text":"…"}'


class WrongLine(Exception):
    """A line cannot be imported. `reason`: not_understood, nesting, too_long, too_many, duplicate, version."""

    def __init__(self, reason: str, message: str, limit: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.limit = limit

    def refusal(self, field: str, line: int) -> Refused:
        params: JsonObject = {"field": field, "line": line}
        if self.limit is not None:
            params["limit"] = self.limit
        hint = HINT if self.reason == "not_understood" else None
        return Refused("invalid_params", f"Line {line}: {self}", reason=self.reason, params=params, hint=hint)


class Plain(msgspec.Struct, forbid_unknown_fields=True):
    """One message, in the plain format."""

    role: str
    text: str
    ts: int | float | str | None = None
    id: str | None = None


class ExportHeader(msgspec.Struct, rename="camel"):
    """What an export says about the whole chat. `keys` are all keys that it has."""

    title: str | None = None
    title_by: str | None = None
    head: str | None = None
    config: JsonObject | None = None
    keys: frozenset[str] = frozenset()


class Blob(msgspec.Struct, frozen=True):
    data: bytes
    mime_type: str
    name: str | None

    @property
    def id(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class PatchLine(msgspec.Struct, frozen=True):
    patch: Patch
    cleared: bool


class OpenFilesLine(msgspec.Struct, frozen=True):
    files: list[JsonObject]


ImportEntry = Plain | ExportHeader | Blob | PatchLine | OpenFilesLine | Turn


class _BlobLine(msgspec.Struct, rename="camel"):
    data: str
    mime_type: str
    name: str | None = None


class _Line(msgspec.Struct):
    """Any line of a source; its keys decide what it is."""

    sidecar: str | None = None
    version: int | None = None
    turn: Turn | None = None
    blob: _BlobLine | None = None
    patch: Patch | None = None
    cleared: bool = False
    open_files: list[JsonObject] | None = msgspec.field(default=None, name="openFiles")
    role: str | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_plain = msgspec.json.Decoder(Plain).decode


def decode(line: bytes) -> ImportEntry:
    """Decode one line; WrongLine when it cannot be imported."""
    check_length(line)
    check_depth(line)
    try:
        entry = _entry(line)
    except (msgspec.DecodeError, binascii.Error, KeyError, ValueError, RecursionError) as error:
        said = str(error) or type(error).__name__
        raise WrongLine("not_understood", f"it is neither of an export nor a plain turn: {said}") from error
    _check(entry)
    return entry


def check_length(line: bytes) -> None:
    limit = MAX_BLOB_LINE_BYTES if line[:8] == b'{"blob":' else MAX_LINE_BYTES
    if len(line) > limit:
        raise WrongLine("too_long", f"it has more than {limit} bytes", limit)


def check_depth(line: bytes) -> None:
    """Refuse deep nesting before anything recurses into it."""
    if is_deeper(line, MAX_DEPTH):
        raise WrongLine("nesting", f"it is nested deeper than {MAX_DEPTH} levels", MAX_DEPTH)


def _entry(line: bytes) -> ImportEntry:
    shape = _decode_line(line)
    if shape.role is not None:
        return _decode_plain(line)
    if shape.turn is not None:
        return shape.turn
    if shape.patch is not None:
        return PatchLine(shape.patch, shape.cleared)
    if shape.open_files is not None:
        return OpenFilesLine(shape.open_files)
    if shape.blob is not None:
        data = base64.b64decode(shape.blob.data, validate=True)
        return Blob(data, shape.blob.mime_type, shape.blob.name)
    if shape.sidecar == "chat":
        return _header(line)
    raise ValueError("it has none of `role`, `turn`, `blob`, `patch`, `openFiles` and `sidecar`")


def _header(line: bytes) -> ExportHeader:
    header = msgspec.json.decode(line)
    if header.get("version") != 1:
        raise WrongLine(
            "version", f"an export of version {header.get('version')} is newer than this sidecar", 1
        )
    known = {key: value for key, value in header.items() if key != "keys"}
    return msgspec.structs.replace(msgspec.convert(known, ExportHeader), keys=frozenset(header))


def _check(entry: ImportEntry) -> None:
    match entry:
        case Plain():
            _check_text(entry.text)
            _check_ids(entry.id or "", entry.role)
        case Turn():
            if len(entry.items) > MAX_ITEMS:
                raise WrongLine("too_many", f"its turn has more than {MAX_ITEMS} items", MAX_ITEMS)
            _check_ids(entry.id, entry.prompt_id, *(item.id for item in entry.items))
            if len({item.id for item in entry.items}) < len(entry.items):
                raise WrongLine("duplicate", "two items of its turn have one `id`")
            for item in entry.items:
                _check_item(item)
        case PatchLine():
            _check_ids(entry.patch.id, entry.patch.turn_id)
        case OpenFilesLine():
            if len(entry.files) > MAX_OPEN_FILES:
                raise WrongLine("too_many", f"it names more than {MAX_OPEN_FILES} files", MAX_OPEN_FILES)


def _check_item(item: Item) -> None:
    _check_text(item.text or "")
    for block in item.content or ():
        _check_text(block.text or "")


def _check_text(text: str) -> None:
    if is_too_long(text):
        raise WrongLine("too_long", f"a text in it has more than {MAX_TEXT_BYTES} bytes", MAX_TEXT_BYTES)


def _check_ids(*ids: str) -> None:
    for id in ids:
        if len(id) > MAX_ID_BYTES:
            raise WrongLine("too_long", f"an `id` in it has more than {MAX_ID_BYTES} bytes", MAX_ID_BYTES)
