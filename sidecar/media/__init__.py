"""Checks media by their bytes: which format they are, whether they decode, how large they are.

Owns the limits of what a prompt may carry. Pure, and knows no chat, no provider and no wire. The check walks the
container (chunks, segments, frames) and inflates PNG pixels; it never holds decoded pixels in memory.
"""

from __future__ import annotations

from typing import Literal

from .formats import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    MAX_AUDIO_BYTES,
    MAX_IMAGE_BYTES,
    MAX_IMAGE_PIXELS,
    MAX_IMAGE_SIDE,
    BadMedia,
    Facts,
)

__all__ = [
    "AUDIO_TYPES",
    "IMAGE_TYPES",
    "MAX_AUDIO_BYTES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_PIXELS",
    "MAX_IMAGE_SIDE",
    "BadMedia",
    "Facts",
    "MediaKind",
    "inspect",
]

MediaKind = Literal["image", "audio"]


def inspect(data: bytes, kind: MediaKind) -> Facts:
    """Return the facts about the bytes; raise BadMedia with the problem."""
    # The first media block loads the parsers; a process without media never does.
    if kind == "image":
        from .images import inspect_image

        return inspect_image(data)
    from .audio import inspect_audio

    return inspect_audio(data)
