"""A file's bytes as text and back, without loss: its encoding, its byte order mark and its line ends stay.

Pure. What would not come back as the very same bytes is no text here (`NotText`), and text that a file's encoding
has no bytes for is refused, not bent. Knows nothing of paths, or of what is done with the text.
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
    """The bytes are not text, or the text has no bytes in the file's encoding; the words say which."""


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file with its line ends as they are, without its byte order mark.

    `newline` is the line end that all lines have, and `\\n` when there is none yet; None says that they differ.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: Newline | None = "\n"

    @property
    def plain(self) -> str:
        """The text with `\\n` for the file's own line end; as it is where line ends differ."""
        return self.text if self.newline is None else self.text.replace(self.newline, "\n")

    def with_ends(self, plain: str) -> str:
        """Another text for this file, with the file's own line ends where it has `\\n` or `\\r\\n`."""
        if self.newline in ("\r\n", "\r"):
            return plain.replace("\r\n", "\n").replace("\n", self.newline)
        return plain

    def encoded(self, text: str) -> bytes:
        """The bytes of another text for this file, whose line ends are taken as they are."""
        if "\0" in text:
            raise NotText("The new text has a NUL character, which no text file can have.")
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            name, char = _NAMES[self.encoding], ascii(text[error.start])
            raise NotText(f"The file is in {name}, which has no character {char} of the new text.") from error


def decoded(data: bytes) -> TextFile:
    """The file's text. By its mark, else UTF-8, else the Western code pages, which take nearly everything."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    text = _in(encoding, data[len(mark) :])
    if text is None:
        mark = b""
        encoding, text = next(
            ((name, text) for name in ("cp1252", "latin-1") if (text := _in(name, data)) is not None),
            ("", "\0"),
        )
    if "\0" in text:
        raise NotText("It is not a text file.")
    return TextFile(text, encoding, mark, _newline(text))


def lines_of(plain: str) -> list[str]:
    """The lines with their ends; a text without a last line end has a last line without one.

    Only `\\n` ends a line. `str.splitlines` would also end one at a form feed or a Unicode separator, and no
    editor or diff would agree with its numbers.
    """
    lines = plain.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _in(encoding: str, data: bytes) -> str | None:
    """The text, if exactly these bytes come back of it."""
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
