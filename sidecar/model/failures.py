"""The errors of the program. Packages raise a `Failure`; only the wire layer maps its name to a code.

Failure
├── Refused        the request cannot be executed (not_found, deleted, locked, …)
├── StorageFailed  the disk or the database failed (reason: full, readonly, corrupt, removed, replaced, …)
└── ProviderFailed the model's provider failed (reason: no_key, quota, offline, stream_cut, …)
"""

from __future__ import annotations

from collections.abc import Mapping

from . import JsonObject


class Failure(Exception):
    """An error for the user of the sidecar: an app localises it by `name`, `reason`, `params` and `action`.

    `facts` are what the contract guarantees with this error, such as the owner of a lock.
    """

    def __init__(
        self,
        name: str,
        message: str,
        *,
        reason: str | None = None,
        params: Mapping[str, object] | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        action: str | None = None,
        hint: str | None = None,
        facts: Mapping[str, object] | None = None,
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

    def details(self) -> JsonObject:
        """Return everything but the message, under the names of the contract, without absent values."""
        fields: JsonObject = {
            "name": self.name,
            "reason": self.reason,
            "params": self.params,
            "retryable": self.retryable,
            "retryAfterMs": self.retry_after_ms,
            "action": self.action,
            "hint": self.hint,
        }
        return {**{key: value for key, value in fields.items() if value is not None}, **self.facts}


class Refused(Failure):
    """The request cannot be executed as it is."""


class StorageFailed(Failure):
    def __init__(
        self, reason: str, message: str, *, action: str | None = None, retryable: bool = False
    ) -> None:
        super().__init__("storage", message, reason=reason, action=action, retryable=retryable)


def repaired_meanwhile() -> StorageFailed:
    """The failure of what began before the database was replaced by a repaired one."""
    return StorageFailed("corrupt", "The database was repaired meanwhile", action="retry", retryable=True)


def out_of_memory() -> StorageFailed:
    """Convert a MemoryError into a failure: the machine lacks a resource, as with a full disk."""
    return StorageFailed("io", "No memory was left", action="retry", retryable=True)


PROVIDER_ACTIONS: dict[str, str] = {
    "no_key": "enter_key",
    "bad_key": "enter_key",
    "quota": "check_billing",
    "rate_limit": "retry",
    "overloaded": "retry",
    "offline": "check_network",
    "timeout": "retry",
    "model_unknown": "choose_model",
    "window": "compact",
    "refused": "edit_prompt",
    "stream_cut": "retry",
    "bad_reply": "retry",
}
"""What the user can do about each reason of a provider's failure."""


class ProviderFailed(Failure):
    """The model's provider failed.

    The action depends on the reason and on whether the failure is temporary: one that cannot be retried never
    has the action "retry" nor a time, and a retryable one never requires something else first.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retryable: bool = False,
        action: str | None = None,
        hint: str | None = None,
        params: Mapping[str, object] | None = None,
        retry_after_ms: int | None = None,
        is_final: bool = False,
    ) -> None:
        self.is_final = is_final
        """Whether another attempt would fail in the same way, as far as the provider knows."""
        super().__init__(
            "provider_error",
            message,
            reason=reason,
            retryable=retryable,
            action=action or _provider_action(reason, retryable),
            hint=hint,
            params=params,
            retry_after_ms=retry_after_ms if retryable else None,
        )


def named_window(failure: ProviderFailed) -> int | None:
    """Return the context window that the provider named when it refused a request as too large."""
    window = (failure.params or {}).get("window")
    return window if failure.reason == "window" and isinstance(window, int) else None


def _provider_action(reason: str, retryable: bool) -> str:
    usual = PROVIDER_ACTIONS[reason]
    if retryable:
        return usual if usual in ("retry", "check_network") else "retry"
    return "choose_model" if usual == "retry" else usual


def invalid_param(field: str, expected: str, words: str | None = None) -> Refused:
    """Return the error for a parameter `field` that is not what was expected; `words` say more than that."""
    params = {"field": field, "expected": expected}
    return Refused("invalid_params", f"`{field}`: {words or expected}", params=params)
