"""What the user is told when a command fails. Knows the errors, not the commands."""

from __future__ import annotations


class Failed(Exception):
    """A command cannot go on; the message names what was wrong and what to do. `code` is the exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def explain(error: BaseException) -> str | None:
    """The message for an error that has one; None for a bug."""
    from sidecar_client import RpcError, SidecarError

    if isinstance(error, RpcError):
        return explain_object(error.message, error.data)
    if isinstance(error, Failed | SidecarError | OSError):
        return str(error)
    return None


def explain_object(message: str, data: dict[str, object]) -> str:
    """An error of the contract in a sentence or two: what happened, and the hint where there is one."""
    more = [f"\n  {data[key]}" for key in ("hint",) if data.get(key)]
    more += [f"\n  ref: {data['ref']}"] if data.get("ref") else []
    return message + "".join(more)
