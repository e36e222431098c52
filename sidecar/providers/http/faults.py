"""What a provider's trouble means in the words of the contract: a reason, whether to try again, what to do.

Each API spells its errors in its own way; a dialect turns them into a `Trouble`, and this room judges it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from ...model.failures import ProviderFailed
from ...system import redact
from ..connection import Connection

MAX_READ = 4096
"""Of an error's words, before anything is looked for in them."""

MAX_MESSAGE = 500
"""Enough of a provider's own words to act on."""

_WINDOW = re.compile(
    r"context.{0,3}(length|window|size)|prompt is too long|too many (input )?tokens|maximum.{0,20}tokens"
    r"|token count.{0,40}exceeds|exceeds.{0,40}(context|token)|input.{0,20}too (long|large)",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model.{0,80}(not.{0,6}(found|exist|supported|available)|unknown|invalid)|(no such|invalid) model", re.I
)
_KEY = re.compile(
    r"api.?key.{0,20}(not valid|invalid|incorrect|expired)|(invalid|incorrect).{0,12}api.?key", re.I
)
_QUOTA = re.compile(
    r"insufficient.?(quota|balance|credit|funds)|credit balance|billing|payment|quota exceeded.{0,200}plan",
    re.I,
)
_FLAGGED = re.compile(r"flagged|moderation", re.IGNORECASE)
_FILTERED = re.compile(
    r"content.?(filter|policy|management)|safety|blocked|prohibited|" + _FLAGGED.pattern, re.IGNORECASE
)


class Trouble(msgspec.Struct, frozen=True):
    """What a provider said went wrong. `status` is HTTP's, or the one that its code amounts to."""

    status: int
    code: str = ""
    message: str = ""
    retry_after_ms: int | None = None


def judged(trouble: Trouble, connection: Connection, model: str | None = None) -> ProviderFailed:
    """The failure that the user is told."""
    reason = _reason(trouble)
    if reason == "bad_key" and connection.key is None:
        return no_key(connection)
    return failure(
        reason,
        trouble.message or f"HTTP status {trouble.status}",
        connection,
        model=model,
        status=trouble.status,
        retry_after_ms=trouble.retry_after_ms,
    )


def failure(
    reason: str,
    said: str,
    connection: Connection,
    *,
    model: str | None = None,
    status: int | None = None,
    retry_after_ms: int | None = None,
) -> ProviderFailed:
    """A failure of this connection, with what to do about it and without its key."""
    params = {"provider": connection.name, "model": model, "status": status}
    return ProviderFailed(
        reason,
        f"{connection.name}: {_clean(said)}",
        retryable=reason in ("rate_limit", "overloaded", "offline", "timeout", "stream_cut", "bad_reply")
        and not (reason == "bad_reply" and status is not None),
        action=_ACTIONS.get(reason, "retry"),
        hint=_hint(reason, connection, model),
        params={key: value for key, value in params.items() if value is not None},
        retry_after_ms=retry_after_ms,
    )


def no_key(connection: Connection) -> ProviderFailed:
    variable = connection.key_env or "its API key's variable"
    return ProviderFailed(
        "no_key",
        f"{connection.name}: no API key",
        action="enter_key",
        hint=f"Set {variable}, or give the key by providers/configure or `sidecar providers set-key {connection.name}`",
        params={"provider": connection.name, "keyEnv": connection.key_env},
    )


def retry_after(headers: Mapping[str, str]) -> int | None:
    """Milliseconds until the provider wants to be asked again: in milliseconds, seconds, or as a date."""
    try:
        return max(0, int(float(headers["retry-after-ms"])))
    except (KeyError, ValueError, OverflowError):
        pass
    value = headers.get("retry-after", "")
    try:
        return max(0, int(float(value) * 1000))
    except (ValueError, OverflowError):
        return _until(value)


def _until(date: str) -> int | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0, int((parsedate_to_datetime(date).timestamp() - time.time()) * 1000))
    except (ValueError, TypeError, OverflowError):
        return None


def error_of(body: bytes) -> tuple[str, str]:
    """The code and the message in an error's body, whichever API wrote it; HTML becomes its title."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", _plain(body)
    if isinstance(document, list) and document:
        document = document[0]
    return described(document)


def described(document: Any) -> tuple[str, str]:
    """The code and the message of an error document of any of the APIs."""
    if not isinstance(document, dict):
        return "", ""
    error = document.get("error") or document
    if not isinstance(error, dict):
        return "", str(error)
    codes = (error.get("code"), error.get("status"), error.get("type"))
    code = " ".join(str(code) for code in codes if isinstance(code, str))
    message = error.get("message") or document.get("message") or document.get("detail") or ""
    return code, message if isinstance(message, str) else msgspec.json.encode(message).decode()


_ACTIONS = {
    "bad_key": "enter_key",
    "no_key": "enter_key",
    "quota": "check_billing",
    "model_unknown": "choose_model",
    "window": "compact",
    "refused": "edit_prompt",
    "offline": "check_network",
}

_BY_STATUS = {
    401: "bad_key",
    402: "quota",
    403: "bad_key",
    404: "model_unknown",
    408: "timeout",
    409: "overloaded",
    413: "window",
    429: "rate_limit",
    504: "timeout",
}


def _reason(trouble: Trouble) -> str:
    status, text = trouble.status, f"{trouble.code[:MAX_READ]} {trouble.message[:MAX_READ]}"
    if status in (400, 422):
        return _reason_of_words(text)
    if status in (402, 403, 429) and _QUOTA.search(text):
        return "quota"
    if status == 403 and _MODEL.search(text):
        return "model_unknown"
    if status == 403 and _FLAGGED.search(text):
        return "refused"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "overloaded" if status >= 500 else "bad_reply"


def _reason_of_words(text: str) -> str:
    """A bad request: only the words tell which kind."""
    for pattern, reason in (
        (_WINDOW, "window"),
        (_KEY, "bad_key"),
        (_QUOTA, "quota"),
        (_MODEL, "model_unknown"),
        (_FILTERED, "refused"),
    ):
        if pattern.search(text):
            return reason
    return "bad_reply"


def _hint(reason: str, connection: Connection, model: str | None) -> str | None:
    where = f"`base_url` of [providers.{connection.name}]"
    hints = {
        "bad_key": f"The key comes from the {connection.key_source}; give another one",
        "quota": "The provider's account is out of credit, or has no such plan",
        "model_unknown": f"models/list shows what {connection.name} offers",
        "window": "Compact the chat, start a new one, or choose a model with a larger window",
        "offline": f"Check the network, the proxy and {where}",
        "timeout": f"`timeout` of [providers.{connection.name}] is {connection.timeout:g} s",
    }
    return hints.get(reason)


def _plain(body: bytes) -> str:
    """Text that is no JSON: a page's title, or its beginning."""
    text = body[:MAX_READ].decode(errors="replace")
    title = re.search(r"<title[^>]{0,200}>(.{0,500}?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = title.group(1) if title else re.sub(r"<[^>]*>", " ", text)
    return " ".join(words.split())


def _clean(said: str) -> str:
    """One line without the key, which some providers repeat in their errors."""
    return redact.redacted(" ".join(said.split()))[:MAX_MESSAGE]
