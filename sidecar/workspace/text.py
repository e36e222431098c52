"""Decodes a file's bytes to text and back, without loss: its encoding, byte order mark and line ends stay.

Pure. Bytes that would not round-trip exactly are not text (`NotText`), and text that a file's encoding cannot
represent is refused, not altered. Knows nothing of paths, or of how the text is used.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Newline = Literal["\n", "\r\n", "\r"]

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NAMES = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16 (little endian)",
    "utf-16-be": "UTF-16 (big endian)",
    "cp1252": "Windows-1252",
    "latin-1": "ISO 8859-1",
}


class NotText(Exception):
    """The bytes are not text, or the text cannot be encoded in the file's encoding; the message says which."""


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file with its original line ends, without its byte order mark.

    `newline` is the line end of all lines, and `\\n` when there is none yet; None means that they differ.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: Newline | None = "\n"

    @property
    def plain(self) -> str:
        """Return the text with `\\n` for the file's own line end; unchanged if line ends differ."""
        return self.text if self.newline is None else self.text.replace(self.newline, "\n")

    def with_ends(self, plain: str) -> str:
        """Return another text for this file, with the file's own line ends in place of `\\n` or `\\r\\n`."""
        if self.newline in ("\r\n", "\r"):
            return plain.replace("\r\n", "\n").replace("\n", self.newline)
        return plain

    def encoded(self, text: str) -> bytes:
        """Return the bytes of another text for this file, with its line ends unchanged."""
        if "\0" in text:
            raise NotText("The new text has a NUL character, which no text file can have.")
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            name, char = _NAMES[self.encoding], ascii(text[error.start])
            raise NotText(f"The file is in {name}, which has no character {char} of the new text.") from error


def decode_text(data: bytes) -> TextFile:
    """Return the file's text: by its byte order mark, else UTF-8, else the Western code pages, which accept
    nearly everything."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    text = _decode_exactly(encoding, data[len(mark) :])
    if text is None:
        mark = b""
        encoding, text = next(
            (
                (name, text)
                for name in ("cp1252", "latin-1")
                if (text := _decode_exactly(name, data)) is not None
            ),
            ("", "\0"),
        )
    if "\0" in text:
        raise NotText("It is not a text file.")
    return TextFile(text, encoding, mark, _newline(text))


def split_lines(plain: str) -> list[str]:
    """Return the lines with their ends; a text without a final line end has a last line without one.

    Only `\\n` ends a line. `str.splitlines` would also split at a form feed or a Unicode separator, and its
    line numbers would differ from those of editors and diffs.
    """
    lines = plain.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _decode_exactly(encoding: str, data: bytes) -> str | None:
    """Return the text if it encodes to exactly these bytes again."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if text.encode(encoding) == data else None


def _newline(text: str) -> Newline | None:
    windows = text.count("\r\n")
    unix = text.count("\n") - windows
    mac = text.count("\r") - windows
    kinds: list[tuple[int, Newline]] = [(unix, "\n"), (windows, "\r\n"), (mac, "\r")]
    used = [newline for count, newline in kinds if count]
    if len(used) > 1:
        return None
    return used[0] if used else "\n"
