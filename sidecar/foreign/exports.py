"""Reads exports: a zip file, its unpacked folder, or the JSON document with all chats in it. Nothing is unpacked."""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator

import msgspec

from ..media import MAX_AUDIO_BYTES, MAX_IMAGE_BYTES
from ..model import JsonObject
from ..text.json_depth import is_deeper
from .base import MAX_DEPTH, MAX_LINE_BYTES, ForeignChat, Found, FoundChat, Problem
from .building import milliseconds
from .files import mark_of
from .records import Notes, Unreadable, dict_of, opened, text_of

MAX_DOCUMENT_BYTES = 1024 * 1024 * 1024
"""Of a document, unpacked: it is in memory while its chats are read."""

MAX_MEMBERS = 100_000
MAX_RATIO = 200
"""How many times larger than packed a file of a zip may be: text rarely gets 20 times smaller."""

MIN_KEY = 8
"""Characters of an id, by which the name of an attachment may begin; a shorter one could be any word."""

MAX_ATTACHMENT_BYTES = max(MAX_IMAGE_BYTES, MAX_AUDIO_BYTES)

CHAT_BYTES = 4 * MAX_LINE_BYTES
"""Of one chat in a document."""

_OWN = (
    "chat.html",
    "user.json",
    "users.json",
    "projects.json",
    "memories.json",
    "message_feedback.json",
    "model_comparisons.json",
    "shared_conversations.json",
)

_chats = msgspec.json.Decoder(list[msgspec.Raw])
_decode = msgspec.json.Decoder().decode

_DAMAGE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)
"""What reading a damaged, encrypted or foreign zip raises."""

Read = Callable[[JsonObject, "Export", Notes], ForeignChat]


class Export:
    """An export at a path, and the files that it brings."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._names: dict[str, str] | None = None

    def documents(self) -> Iterator[tuple[str, bytes] | Problem]:
        """The documents with chats, by name."""
        if os.path.isdir(self.path):
            for name in sorted(_listed(self.path)):
                if _is_chats(name):
                    yield from self._file(os.path.join(self.path, name))
        elif self._is_zip():
            yield from self._packed()
        else:
            yield from self._file(self.path)

    def attachment(self, key: str) -> tuple[str, bytes] | None:
        """The file that is called `key`, or begins with it and a mark, with its name. No document with chats is one."""
        if self._names is None:
            found = {os.path.basename(name): name for name in self._all_names()}
            self._names = {base: name for base, name in found.items() if not _is_own(base)}
        key = os.path.basename(key)
        name = self._names.get(key)
        if name is None and len(key) >= MIN_KEY:
            name = next((name for base, name in self._names.items() if _begins(base, key)), None)
        if name is None:
            return None
        try:
            return os.path.basename(name), self._bytes(name)
        except (Unreadable, *_DAMAGE):
            return None

    def _all_names(self) -> list[str]:
        if os.path.isdir(self.path):
            return [
                os.path.relpath(os.path.join(folder, name), self.path)
                for folder, _, names in os.walk(self.path)
                for name in names
            ][:MAX_MEMBERS]
        if not self._is_zip():
            return []
        with opened(self.path) as file, zipfile.ZipFile(file) as packed:
            return packed.namelist()[:MAX_MEMBERS]

    def _bytes(self, name: str) -> bytes:
        if os.path.isdir(self.path):
            with opened(os.path.join(self.path, name)) as file:
                data = file.read(MAX_ATTACHMENT_BYTES + 1)
        else:
            with opened(self.path) as file, zipfile.ZipFile(file) as packed:
                data = _member(packed, packed.getinfo(name), MAX_ATTACHMENT_BYTES)
        if len(data) > MAX_ATTACHMENT_BYTES:
            raise Unreadable("it is too large")
        return data

    def _is_zip(self) -> bool:
        with opened(self.path) as file:
            return file.read(4) == b"PK\x03\x04"

    def _file(self, path: str) -> Iterator[tuple[str, bytes] | Problem]:
        try:
            with opened(path) as file:
                data = file.read(MAX_DOCUMENT_BYTES + 1)
        except Unreadable as error:
            yield Problem(path, None, str(error))
            return
        if len(data) > MAX_DOCUMENT_BYTES:
            yield Problem(path, None, f"it has more than {MAX_DOCUMENT_BYTES} bytes")
        else:
            yield path, data

    def _packed(self) -> Iterator[tuple[str, bytes] | Problem]:
        try:
            with opened(self.path) as file, zipfile.ZipFile(file) as packed:
                found = [each for each in packed.infolist()[:MAX_MEMBERS] if _is_chats(each.filename)]
                for member in sorted(found, key=lambda each: each.filename):
                    shown = f"{self.path}/{member.filename}"
                    try:
                        yield shown, _member(packed, member, MAX_DOCUMENT_BYTES)
                    except (Unreadable, *_DAMAGE) as error:
                        yield Problem(shown, None, str(error))
        except _DAMAGE as error:
            yield Problem(self.path, None, f"it is no zip that can be read: {error}")


def find(path: str, id_key: str, updated_key: str, read: Read) -> Iterator[Found]:
    """The chats of an export. `id_key` and `updated_key` name the id of a chat and the time of its last change."""
    export, any_document = Export(path), False
    try:
        for document in export.documents():
            any_document = True
            if isinstance(document, Problem):
                yield document
                continue
            yield from _in_document(export, *document, id_key, updated_key, read)
    except Unreadable as error:
        yield Problem(path, None, str(error))
        return
    if not any_document:
        yield Problem(path, None, "it has no conversations.json")


def _in_document(
    export: Export, name: str, data: bytes, id_key: str, updated_key: str, read: Read
) -> Iterator[Found]:
    for number, raw in enumerate(_elements(data), 1):
        shown = f"{name}#{number}"
        if isinstance(raw, str):
            yield Problem(name, None, f"chat {number}: {raw}")
            continue
        # Only what `read` holds stays in memory: a part of the document, and no copy of it.
        packed = bytes(raw)
        if is_deeper(packed, MAX_DEPTH):
            yield Problem(shown, None, f"it is nested deeper than {MAX_DEPTH} levels")
            continue
        try:
            value = dict_of(_decode(packed))
        except (msgspec.DecodeError, RecursionError) as error:
            yield Problem(shown, None, f"it is no JSON: {error}")
            continue
        id = text_of(value.get(id_key)) or text_of(value.get("id")) or text_of(value.get("uuid"))
        if not id:
            yield Problem(shown, None, "it is no chat: it has no id")
            continue
        yield FoundChat(
            id=id,
            file=shown,
            mark=mark_of(len(packed), zlib.crc32(packed)),
            size=len(packed),
            updated_at=milliseconds(value.get(updated_key)),
            read=lambda raw=raw, shown=shown: read(dict_of(_decode(raw)), export, Notes(shown)),  # type: ignore[misc]
        )


def _elements(data: bytes) -> Iterator[bytes | msgspec.Raw | str]:
    """The members of the list in a document. Of a damaged one those before the damage, and then what is wrong."""
    try:
        raws: list[msgspec.Raw] = _chats.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if not is_deeper(data[:CHAT_BYTES], MAX_DEPTH):
            yield from _before_damage(data)
        yield f"the document is damaged: {error}"
        return
    for raw in raws:
        yield raw if len(memoryview(raw)) <= CHAT_BYTES else f"it has more than {CHAT_BYTES} bytes"


def _before_damage(data: bytes) -> Iterator[bytes]:
    text = data.decode("utf-8", "replace")
    decoder, at = json.JSONDecoder(), text.find("[") + 1
    while at:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield json.dumps(value).encode()


def _member(packed: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """The bytes of a file in a zip; Unreadable for one that unpacks to more than it may."""
    allowed = min(limit, max(member.compress_size * MAX_RATIO, 1024 * 1024))
    if member.file_size > allowed:
        raise Unreadable(f"it unpacks to {member.file_size} bytes, more than {allowed}")
    with packed.open(member) as file:
        data = file.read(allowed + 1)
    if len(data) > allowed:
        raise Unreadable(f"it unpacks to more than {allowed} bytes")
    return data


def _is_chats(name: str) -> bool:
    base = os.path.basename(name)
    return base.startswith("conversations") and base.endswith(".json")


def _is_own(name: str) -> bool:
    """Whether a file is part of the export itself, and no attachment."""
    return _is_chats(name) or name in _OWN


def _begins(name: str, key: str) -> bool:
    return name.startswith(key) and name[len(key) : len(key) + 1] in ("-", "_", ".")


def _listed(folder: str) -> list[str]:
    try:
        return [
            entry.name
            for entry in os.scandir(folder)
            if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
        ]
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
