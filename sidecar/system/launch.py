"""What the door passes on to the house: how the program was called, and what happened before the house stood."""

from __future__ import annotations

from typing import Any


class ServeOptions:
    """The command line of `sidecar serve`. A plain class: a named tuple takes half a millisecond to define."""

    __slots__ = ("chat_id", "config", "data_dir", "framing", "log_level")

    def __init__(
        self,
        data_dir: str | None = None,
        config: str | None = None,
        framing: str = "auto",
        log_level: str | None = None,
        chat_id: str | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.config = config
        self.framing = framing
        self.log_level = log_level
        self.chat_id = chat_id


class Handover:
    """The greeting that was answered at the door, the frames that wait, and whether the client has gone already."""

    __slots__ = ("ended", "frames", "greeting")

    def __init__(self, greeting: dict[str, Any] | None, frames: list[Any], ended: bool) -> None:
        self.greeting = greeting
        self.frames = frames
        self.ended = ended
