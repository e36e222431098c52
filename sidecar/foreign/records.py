"""Reads files of records: whole JSON documents, and lines that are one each. What is damaged is named, and the rest
is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec

from ..model import JsonObject
from ..system.safe_open import FileRefused, open_regular, refusal_for
from ..text.json_depth import is_deeper
from .base import MAX_CHAT_BYTES, MAX_DEPTH, MAX_LINE_BYTES, MAX_PROBLEMS, ForeignChat, Problem

READ_BYTES = 256 * 1024

_decode = msgspec.json.Decoder().decode


class Unreadable(Exception):
    """A file that cannot be read at all; the message says why."""


class Notes:
    """The problems of one chat."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.stray = 0
        self.line: int | None = None
        """The line that is being read."""

    def add(self, line: int | None, message: str) -> None:
        line = line if line is not None else self.line
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.file, line, message))
        else:
            self.stray += 1

    def put(self, chat: ForeignChat) -> ForeignChat:
        chat.problems, chat.stray = self.problems, self.stray
        return chat


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """A regular file, open for reading alone; Unreadable with the reason when it is none."""
    try:
        file = os.fdopen(open_regular(path), "rb", READ_BYTES)
    except (OSError, ValueError) as error:
        raise Unreadable(str(refusal_for(error))) from error
    except FileRefused as refusal:
        raise Unreadable(str(refusal)) from refusal
    with file:
        yield file


def lines(path: str, notes: Notes, skip: tuple[bytes, ...] = ()) -> Iterator[tuple[int, JsonObject]]:
    """The records of a file with one per line, with the number of the line.

    Lines that contain one of `skip` near their start are not decoded: some programs repeat whole requests.
    """
    total = 0
    with opened(path) as file:
        for number, line in _bounded_lines(file, notes):
            head = line[:400]
            if any(mark in head for mark in skip):
                continue
            total += len(line)
            if total > MAX_CHAT_BYTES:
                notes.add(number, f"the rest is left out: the file has more than {MAX_CHAT_BYTES} bytes")
                return
            record = decoded(line, number, notes)
            if isinstance(record, dict):
                notes.line = number
                yield number, record
                notes.line = None
            elif record is not None:
                notes.add(number, "it is no JSON object")


def document(path: str, notes: Notes, limit: int = MAX_CHAT_BYTES) -> Any:
    """The JSON document in a file; None, and a problem, when there is none."""
    with opened(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        notes.add(None, f"it has more than {limit} bytes")
        return None
    return decoded(data, None, notes)


def decoded(data: bytes, number: int | None, notes: Notes) -> Any:
    """The JSON value of some bytes; None, and a problem, when there is none."""
    if is_deeper(data, MAX_DEPTH):
        notes.add(number, f"it is nested deeper than {MAX_DEPTH} levels")
        return None
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        notes.add(number, f"it is no JSON: {error}")
        return None


def _bounded_lines(file: BinaryIO, notes: Notes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank; one that is too long is named and skipped."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            notes.add(number, f"it has more than {MAX_LINE_BYTES} bytes")
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if stripped := line.strip(b" \t\r\n\0"):
            yield number, stripped


def text_of(value: object) -> str:
    """The value as text if it is some, else ""."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
