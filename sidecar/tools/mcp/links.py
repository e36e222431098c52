"""The interface of a link to a server, whether that is a process or a URL."""

from __future__ import annotations

from typing import Any, Protocol

import anyio

MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message of a server; a large screenshot takes a few megabytes."""


class ServerUnusable(Exception):
    """The server cannot be started or reached, or sends what cannot be parsed; the message is for the user."""


class ServerLink(Protocol):
    """`read` and `write` are streams of the SDK's messages; `ended` is set when no more will come.

    `mark` is in the environment of all that the server starts, when it is a process of ours.
    """

    read: Any
    write: Any
    ended: anyio.Event
    mark: str | None

    def trouble(self) -> str | None:
        """Return what is known of why it ended or does not answer."""

    def kill(self) -> None:
        """Kill the server at once, if it is our process."""

    async def disconnect(self) -> None:
        """Give the server a short time to end in an orderly way."""


def innermost_error(error: BaseException) -> BaseException:
    """Return the first exception in a group that is not a group itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
