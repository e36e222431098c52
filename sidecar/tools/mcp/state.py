"""The state of a server, as it is reported to the user."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["starting", "ready", "retrying", "failed", "stopped"]
"""`retrying`: the connection was lost and is being made again. `failed`: it could not be made; it is retried later."""


class ServerState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`since` is in milliseconds since 1970, `attempts` counts failures in a row, `left_out` names tools that are
    offered and not mounted.
    """

    name: str
    state: State
    since: int
    attempts: int = 0
    tools: int = 0
    left_out: tuple[str, ...] = ()
    error: str | None = None
