"""What the door passes on to the house: how the program was called, and what happened before the house stood."""

from __future__ import annotations

from typing import Any, NamedTuple


class ServeOptions(NamedTuple):
    """The command line of `sidecar serve`."""

    data_dir: str | None = None
    config: str | None = None
    framing: str = "auto"
    log_level: str | None = None
    chat_id: str | None = None


class Handover(NamedTuple):
    """The greeting that was answered at the door, the frames that wait, and whether the client has gone already."""

    greeting: dict[str, Any] | None
    frames: list[Any]
    ended: bool
