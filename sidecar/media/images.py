"""Detect the image format by its signature, and let the module of the format check the rest."""

from __future__ import annotations

from .formats import MAX_IMAGE_BYTES, Facts, check_dimensions, check_size, unsupported
from .gif import inspect_gif
from .jpeg import inspect_jpeg
from .png import SIGNATURE, inspect_png
from .webp import inspect_webp

WANTED = "PNG, JPEG, GIF or WebP image"


def inspect_image(data: bytes) -> Facts:
    """Return the type and size of the image; raise BadMedia when it does not decode."""
    check_size(len(data), MAX_IMAGE_BYTES)
    if data.startswith(SIGNATURE):
        found = inspect_png(data)
    elif data.startswith(b"\xff\xd8\xff"):
        found = inspect_jpeg(data)
    elif data[:6] in (b"GIF87a", b"GIF89a"):
        found = inspect_gif(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = inspect_webp(data)
    else:
        raise unsupported(data, WANTED)
    check_dimensions(found.width, found.height)
    return found
