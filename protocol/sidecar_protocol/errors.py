"""The one vocabulary of errors: names, their codes, and the exception that carries one across the wire.

An error on the wire is `{code, message, data{name, reason?, params?, retryable, …}}`. The same object is in RPC
errors, in `error` events and in `turn.ended.error`.
"""

from __future__ import annotations

from typing import Any

CODES: dict[str, int] = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "internal_error": -32603,
    "overloaded": -32001,
    "not_found": -32002,
    "already_exists": -32003,
    "turn_in_progress": -32004,
    "not_initialized": -32005,
    "already_initialized": -32006,
    "message_too_large": -32007,
    "cursor_expired": -32008,
    "deleted": -32009,
    "precondition_failed": -32010,
    "locked": -32011,
    "request_closed": -32012,
    "provider_error": -32013,
    "context_budget": -32014,
    "storage": -32015,
    "shutting_down": -32016,
    "denied": -32017,
    "unsupported_version": -32022,
    "request_cancelled": -32800,
    "server_cancelled": -32802,
}


class RpcError(Exception):
    """An error object of the contract, ready for the wire or just received from it."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data or {}

    @classmethod
    def named(cls, name: str, message: str, *, retryable: bool = False, **data: Any) -> RpcError:
        """The error called `name`; further fields of `data` that are None are omitted."""
        fields = {key: value for key, value in data.items() if value is not None}
        return cls(CODES[name], message, {"name": name, "retryable": retryable, **fields})

    @property
    def name(self) -> str:
        return str(self.data.get("name", ""))

    @property
    def reason(self) -> str | None:
        return self.data.get("reason")

    def to_wire(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "data": self.data}


def no_memory() -> RpcError:
    """The answer to what there is no memory for: it may pass, like a disk that is full."""
    return RpcError.named("storage", "No memory was left", retryable=True, reason="io", action="retry")
