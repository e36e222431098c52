"""What the early responder passes to the server: the command line, and what happened before the server was ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar_protocol import limits

FRAMINGS = ("auto", *limits.FRAMINGS)


class ServeOptions:
    """The command line of `sidecar serve`. A plain class: a named tuple takes half a millisecond to define."""

    __slots__ = ("chat_id", "config", "data_dir", "framing", "frontend", "log_level")

    def __init__(
        self,
        data_dir: str | None = None,
        config: str | None = None,
        framing: str = "auto",
        log_level: str | None = None,
        chat_id: str | None = None,
        frontend: str | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.config = config
        self.framing = framing
        self.log_level = log_level
        self.chat_id = chat_id
        self.frontend = frontend
        """The dialect that the command chooses; None lets the client's first message choose."""


class Handover:
    """The `initialize` request that was answered early and its dialect, the frames that wait, and whether the client
    has disconnected already.
    """

    __slots__ = ("dialect", "ended", "frames", "greeting")

    def __init__(
        self,
        greeting: Mapping[str, object] | None,
        frames: list[Any],
        ended: bool,
        dialect: str | None = None,
    ) -> None:
        self.dialect = dialect
        self.greeting = greeting
        self.frames = frames
        self.ended = ended
