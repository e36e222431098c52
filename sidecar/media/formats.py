"""The formats and limits of media, and the errors of their check. docs/media.md shows the same table."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1024 * 1024

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Formats that the APIs with image input accept; only Gemini does not accept GIF."""

AUDIO_TYPES = ("audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", "audio/aac", "audio/aiff")
"""Formats that at least one API accepts; OpenAI accepts the first two."""

MAX_IMAGE_BYTES = 20 * MIB
MAX_AUDIO_BYTES = 20 * MIB
"""The limit of one request to a provider: a larger one could never be sent."""

MAX_IMAGE_PIXELS = 64 * MIB
"""8192 x 8192: above every camera phone, and small enough to inflate within a second."""

MAX_IMAGE_SIDE = 16_384
"""Of width and height. Larger ones come from broken headers and decompression bombs."""


class BadMedia(ValueError):
    """The bytes cannot be sent to a model; the message says why, and the remedy."""


class Facts(NamedTuple):
    """What the bytes are, whatever type was declared."""

    mime_type: str
    width: int = 0
    height: int = 0
    animated: bool = False


_FOREIGN = (
    (b"BM", "a BMP image"),
    (b"%PDF", "a PDF document"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x00\x00\x01\x00", "an ICO image"),
    (b"<svg", "an SVG drawing"),
    (b"<?xml", "an XML document"),
    (b"<!DOCTYPE", "an HTML or XML document"),
    (b"<html", "an HTML document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"ID3", "MP3 audio"),
    (b"OggS", "Ogg audio"),
    (b"fLaC", "FLAC audio"),
)


def unsupported(data: bytes, wanted: str) -> BadMedia:
    """Return the error for bytes that begin like none of the accepted formats."""
    if not data:
        return BadMedia(f"it is empty; send {wanted}")
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    found = next((name for start, name in _FOREIGN if head[: len(start)].lower() == start.lower()), None)
    if data[:4] == b"RIFF":
        found = {b"WAVE": "WAV audio", b"WEBP": "a WebP image"}.get(data[8:12], "a RIFF file")
    if data[4:8] == b"ftyp":
        found = "an MP4, HEIC or AVIF file"
    return BadMedia(f"it is {found}; send {wanted}" if found else f"it is no {wanted}")


def check_size(size: int, most: int) -> None:
    """Raise BadMedia when there are more bytes than `most`."""
    if size > most:
        raise BadMedia(f"it has {size} bytes and at most {most // MIB} MiB are allowed; make it smaller")


def check_dimensions(width: int, height: int) -> None:
    """Raise BadMedia for an image without pixels, or with more than a decoder should handle."""
    if width < 1 or height < 1:
        raise BadMedia(f"its header says {width} x {height} pixels; it has nothing to show")
    if max(width, height) > MAX_IMAGE_SIDE or width * height > MAX_IMAGE_PIXELS:
        raise BadMedia(
            f"it has {width} x {height} pixels; at most {MAX_IMAGE_SIDE} on a side and {MAX_IMAGE_PIXELS} in all"
            " are allowed: scale it down"
        )


def truncated(what: str) -> BadMedia:
    return BadMedia(f"the {what} is truncated; send the whole file")
