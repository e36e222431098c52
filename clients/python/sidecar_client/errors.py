"""What can go wrong between an app and its sidecar, as exceptions. Knows nothing of how they come about.

Exception
├── RpcError            the sidecar answered with an error (of `sidecar_protocol.errors`)
└── SidecarError        the client could not bring something to its end
    ├── SidecarDied     the process is gone; carries its exit code and the last it said on stderr
    ├── ChatReplaced    the chat was deleted and made again (or its journal put back): events went with it
    └── TurnFailed      a turn ended with an error, where only its text was asked for
"""

from __future__ import annotations

from sidecar_protocol.errors import RpcError
from sidecar_protocol.messages import ErrorObject

__all__ = ["ChatReplaced", "RpcError", "SidecarDied", "SidecarError", "TurnFailed"]


class SidecarError(Exception):
    """The client could not bring something to its end."""


class SidecarDied(SidecarError):
    """The process is gone. `exit_code` is None where it never started; negative for a signal."""

    def __init__(self, message: str, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.stderr = stderr

    def __str__(self) -> str:
        return f"{self.message}\n{self.stderr}".rstrip()

    def again(self) -> SidecarDied:
        """A fresh exception that says the same: one object raised in two tasks would mix their tracebacks."""
        return SidecarDied(self.message, self.exit_code, self.stderr)


class ChatReplaced(SidecarError):
    """The journal that an iterator followed is no longer there; open the chat anew to see what is."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"The chat {session_id} was deleted and made again while its events were followed")
        self.session_id = session_id


class TurnFailed(SidecarError):
    """The turn ended with `error`; what it had said until then is `text`."""

    def __init__(self, error: ErrorObject, text: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.text = text
