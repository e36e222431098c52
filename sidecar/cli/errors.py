"""The messages of failed commands. Knows the errors, not the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.system.lazy import lazy_module

if TYPE_CHECKING:
    import sidecar_client
else:
    sidecar_client = lazy_module("sidecar_client")


class CommandFailed(Exception):
    """A command cannot continue; the message names the problem and the remedy. `code` is the exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def error_message(error: BaseException) -> str | None:
    """Return the message for an error that has one; None for a bug."""
    if isinstance(error, sidecar_client.RpcError):
        return error_object_message(error.message, error.data)
    if isinstance(error, CommandFailed | sidecar_client.SidecarError | OSError):
        return str(error)
    return None


def error_object_message(message: str, data: dict[str, object]) -> str:
    """Return a protocol error in a sentence or two: what happened, and the hint if there is one."""
    more = [f"\n  {data[key]}" for key in ("hint",) if data.get(key)]
    more += [f"\n  ref: {data['ref']}"] if data.get("ref") else []
    return message + "".join(more)
