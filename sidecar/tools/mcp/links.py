"""What a connection needs of the way to a server, whether that is a process or an address."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .config import ServerConfig

MAX_MESSAGE = 16 * 1024 * 1024
"""One message of a server; a large screenshot takes a few megabytes."""


class Unusable(Exception):
    """The server cannot be started or reached, or says what cannot be understood; the words are for the user."""


class Link(Protocol):
    """`read` and `write` are streams of the SDK's messages; `ended` is set when no more will come.

    `mark` is in the environment of all that the server starts, when it is a process of ours.
    """

    read: Any
    write: Any
    ended: anyio.Event
    mark: str | None

    def trouble(self) -> str | None:
        """What is known of why it ended or does not answer."""

    def kill(self) -> None:
        """End the other side at once, as far as it is ours."""

    async def hang_up(self) -> None:
        """Let the other side end in order, for a moment."""


def opened(config: ServerConfig, environ: Mapping[str, str]) -> AbstractAsyncContextManager[Link]:
    """The way to this server; it is given up at the end of the context."""
    if config.url is not None:
        from .http import reached

        return reached(config)
    from .stdio import started

    return started(config, environ)
