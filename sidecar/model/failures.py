"""What can go wrong, named once. Rooms raise a `Failure`; only the wire knows what code belongs to its name.

Failure
├── Refused       the caller asked for something that cannot be (not_found, deleted, locked, …)
├── StorageFailed the disk or the database said no (reason: full, readonly, corrupt, schema_newer, io)
└── ProviderFailed the model's side failed (reason: no_key, quota, offline, stream_cut, …)
"""

from __future__ import annotations

from typing import Any


class Failure(Exception):
    """An error for the user of the sidecar: `name`, `reason`, `params` and `action` are what an app localises.

    `facts` are what the contract promises with this very error, such as the owner of a lock.
    """

    def __init__(
        self,
        name: str,
        message: str,
        *,
        reason: str | None = None,
        params: dict[str, Any] | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        action: str | None = None,
        hint: str | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.name = name
        self.facts = facts or {}
        self.message = message
        self.reason = reason
        self.params = params
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.action = action
        self.hint = hint

    def details(self) -> dict[str, Any]:
        """All but the message, in the words of the contract, without what is absent."""
        fields = {
            "name": self.name,
            "reason": self.reason,
            "params": self.params,
            "retryable": self.retryable,
            "retryAfterMs": self.retry_after_ms,
            "action": self.action,
            "hint": self.hint,
        }
        return {key: value for key, value in fields.items() if value is not None} | self.facts


class Refused(Failure):
    """The request cannot be carried out as it stands."""


class StorageFailed(Failure):
    def __init__(
        self, reason: str, message: str, *, action: str | None = None, retryable: bool = False
    ) -> None:
        super().__init__("storage", message, reason=reason, action=action, retryable=retryable)


def no_memory() -> StorageFailed:
    """What a MemoryError is to whoever asked: the machine lacks something, as with a disk that fails."""
    return StorageFailed("io", "No memory was left", action="retry", retryable=True)


class ProviderFailed(Failure):
    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retryable: bool = False,
        action: str | None = None,
        hint: str | None = None,
        params: dict[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(
            "provider_error",
            message,
            reason=reason,
            retryable=retryable,
            action=action,
            hint=hint,
            params=params,
            retry_after_ms=retry_after_ms,
        )


def invalid(field: str, expected: str) -> Refused:
    """The parameter `field` is not what was expected."""
    return Refused("invalid_params", f"`{field}`: {expected}", params={"field": field, "expected": expected})
