"""What an error of a provider means in the protocol: a reason, whether to retry, and the remedy.

Each API has its own error format; a dialect converts it to a `ProviderError`, and this module classifies it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.failures import ProviderFailed
from ...system import redact
from ...system.lazy import lazy_module
from ..endpoint import Endpoint

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy_module("email.utils")

MAX_READ = 4096
"""Characters of an error that are searched."""

MAX_MESSAGE = 500
"""Enough of a provider's message to act on."""

PAGE = "page"
"""The code of an error whose body is a page in HTML instead of an API's document."""

_HTML = re.compile(rb"<(!doctype|html|head|title|body)\b", re.IGNORECASE)

_TOO_LARGE = re.compile(r"(request|payload).{0,20}(too large|exceeds)|tokens must be reduced", re.IGNORECASE)
"""Beside a status of rate limits too: no wait makes such a request fit."""
_WINDOW = re.compile(
    r"context.{0,3}(length|window|size)|prompt is too long|too many (input )?tokens|maximum.{0,20}tokens"
    r"|token count.{0,40}exceeds|exceeds?\b.{0,40}(context|token)|input.{0,20}too (long|large)"
    r"|tokens.{0,40}must be <=|must have less than.{0,12}tokens|" + _TOO_LARGE.pattern,
    re.IGNORECASE,
)
_NAMED_WINDOW = re.compile(
    r"(?:(?:context|model) length (?:is|of)|context limit:?[^>]{0,40}>|context (?:size|length|window) \(|tokens >"
    r"|allowed \(|less than|<=|limit:?) *(\d{3,9})|(\d{3,9}) maximum context",
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
_MEDIA = re.compile(
    r"\b(image|vision|multimodal|audio|media.?type|input_(image|audio)|modalit(y|ies)|mime)", re.I
)
"""A provider that refuses a request with these words has refused an attachment."""
_UNSUPPORTED = re.compile(
    r"(image|vision|audio|multimodal).{0,60}(support|input|missing|required|process|decod|format)"
    r"|support.{0,40}(image|vision|audio|multimodal)"
    r"|\b(png|jpe?g|gif|webp)\b.{0,20}(format|chunk|invalid|corrupt)|identify image",
    re.I,
)
"""The same beside a status that means something else: a name such as `gpt-image-1` is not enough."""
_FLAGGED = re.compile(
    r"flagged|moderation|(usage|content|safety).{0,20}(polic|guideline|inspection|risk)|inappropriate|sensitive"
    r"|high risk",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content.?(filter|policy|management)|safety|blocked|prohibited|" + _FLAGGED.pattern, re.IGNORECASE
)


class ProviderError(msgspec.Struct, frozen=True):
    """An error that a provider reported. `status` is that of HTTP, or the one that its code corresponds to."""

    status: int
    code: str = ""
    message: str = ""
    retry_after_ms: int | None = None


def classify(trouble: ProviderError, endpoint: Endpoint, model: str | None = None) -> ProviderFailed:
    """Return the failure for the user."""
    reason = _reason(trouble)
    if reason == "bad_key" and endpoint.key is None:
        return no_key_failure(endpoint)
    return failure(
        reason,
        trouble.message or f"HTTP status {trouble.status}",
        endpoint,
        model=model,
        status=trouble.status,
        retry_after_ms=trouble.retry_after_ms,
        window=_named_window(trouble.message) if reason == "window" else None,
    )


def failure(
    reason: str,
    said: str,
    endpoint: Endpoint,
    *,
    model: str | None = None,
    status: int | None = None,
    retry_after_ms: int | None = None,
    window: int | None = None,
) -> ProviderFailed:
    """Return a failure of this endpoint, with the remedy and without its key."""
    params = {"provider": endpoint.name, "model": model, "status": status, "window": window}
    # An HTTP error status is the provider's verdict on the request: a retry would get the same.
    retryable = reason in _PASSING and not (reason == "bad_reply" and status is not None)
    return ProviderFailed(
        reason,
        f"{endpoint.name}: {_safe_message(said)}",
        retryable=retryable,
        hint=_hint(reason, endpoint, model),
        params={key: value for key, value in params.items() if value is not None},
        retry_after_ms=retry_after_ms,
    )


def no_key_failure(endpoint: Endpoint) -> ProviderFailed:
    variable = endpoint.key_env or "its API key's variable"
    return ProviderFailed(
        "no_key",
        f"{endpoint.name}: no API key",
        action="enter_key",
        hint=f"Set {variable}, or give the key by providers/configure or `sidecar providers set-key {endpoint.name}`",
        params={"provider": endpoint.name, "keyEnv": endpoint.key_env},
    )


def retry_after(headers: Mapping[str, str]) -> int | None:
    """Return the milliseconds until a retry: the header holds milliseconds, seconds, or a date."""
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
    try:
        return max(0, int((email_utils.parsedate_to_datetime(date).timestamp() - time.time()) * 1000))
    except (ValueError, TypeError, OverflowError):
        return None


def parse_error_body(body: bytes) -> tuple[str, str]:
    """Return the code and the message in the body of an error of any API; HTML is reduced to its title."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return PAGE if _HTML.search(body[:MAX_READ]) else "", _text_of_body(body)
    if isinstance(document, list) and document:
        document = document[0]
    return parse_error_document(document)


def parse_error_document(document: Any) -> tuple[str, str]:
    """Return the code and the message of an error document of any of the APIs."""
    if not isinstance(document, dict):
        return "", ""
    error = document.get("error") or document
    if not isinstance(error, dict):
        return "", str(error)
    codes = (error.get("code"), error.get("status"), error.get("type"))
    code = " ".join(str(code) for code in codes if isinstance(code, str))
    message = error.get("message") or document.get("message") or document.get("detail") or ""
    return code, message if isinstance(message, str) else msgspec.json.encode(message).decode()


_PASSING = ("rate_limit", "overloaded", "offline", "timeout", "stream_cut", "bad_reply")
"""Transient reasons."""

_BY_STATUS = {
    401: "bad_key",
    402: "quota",
    403: "bad_key",
    404: "model_unknown",
    406: "refused",
    408: "timeout",
    409: "overloaded",
    413: "window",
    429: "rate_limit",
    451: "refused",
    504: "timeout",
}


def _reason(trouble: ProviderError) -> str:
    status, text = trouble.status, f"{trouble.code[:MAX_READ]} {trouble.message[:MAX_READ]}"
    if status in (400, 422):
        return _reason_by_message(text)
    if status in (404, 415, 500, 501) and _UNSUPPORTED.search(text):
        return "refused"
    if status == 429 and _TOO_LARGE.search(text):
        return "window"
    if status in (402, 403, 429) and _QUOTA.search(text):
        return "quota"
    if status == 403 and _MODEL.search(text):
        return "model_unknown"
    # A page is no API's word on the key: a firewall in between has blocked what was sent.
    if status == 403 and (trouble.code == PAGE or _FLAGGED.search(text)):
        return "refused"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "overloaded" if status >= 500 else "bad_reply"


def _reason_by_message(text: str) -> str:
    """Classify a bad request: only its message tells which kind."""
    for pattern, reason in (
        (_WINDOW, "window"),
        (_KEY, "bad_key"),
        (_QUOTA, "quota"),
        (_UNSUPPORTED, "refused"),
        (_MODEL, "model_unknown"),
        (_FILTERED, "refused"),
        (_MEDIA, "refused"),
    ):
        if pattern.search(text):
            return reason
    return "bad_reply"


def _named_window(message: str) -> int | None:
    """Return how many tokens the provider says that it takes."""
    found = _NAMED_WINDOW.search(message[:MAX_READ].replace(",", ""))
    return int(found.group(1) or found.group(2)) if found else None


def _hint(reason: str, endpoint: Endpoint, model: str | None) -> str | None:
    where = f"`base_url` of [providers.{endpoint.name}]"
    hints = {
        "bad_key": f"The key comes from the {endpoint.key_source}; give another one",
        "quota": "The provider's account is out of credit, or has no such plan",
        "model_unknown": f"models/list shows what {endpoint.name} offers",
        "window": "Compact the chat, start a new one, or choose a model with a larger window",
        "offline": f"Check the network, the proxy and {where}",
        "timeout": f"`timeout` of [providers.{endpoint.name}] is {endpoint.timeout:g} s",
    }
    return hints.get(reason)


def _text_of_body(body: bytes) -> str:
    """Return text that is not JSON: the title of a page, or its beginning."""
    text = body[:MAX_READ].decode(errors="replace")
    title = re.search(r"<title[^>]{0,200}>(.{0,500}?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = title.group(1) if title else re.sub(r"<[^>]*>", " ", text)
    return " ".join(words.split())


def _safe_message(said: str) -> str:
    """Return one line without the key, which some providers repeat in their errors."""
    printable = "".join(character if character.isprintable() else " " for character in said)
    return redact.redact_text(" ".join(printable.split()))[:MAX_MESSAGE]
