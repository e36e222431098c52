"""Notices of a turn in words: a title that stands alone, and a severity."""

from __future__ import annotations

from typing import Any, Literal

from ...model import JsonObject

Severity = Literal["info", "warning", "error"]

Words = tuple[Severity, str, str | None]
"""The severity, the title and the description of a notice."""


def notice_words(code: str, params: JsonObject) -> Words | None:
    """The words of a notice; None for one that is for the model alone."""
    match code:
        case "hook_context":
            return None
        case "hook_message":
            return "info", str(params.get("message") or "A hook has a message."), _hook(params)
        case "window_unknown":
            model, assumed = params.get("model"), params.get("assumed")
            return "info", f"The context window of {model} is not known", f"{assumed} tokens are assumed."
        case "media_left_out":
            return "warning", "Images or audio were not sent to the model", _items(params)
        case "history_left_out":
            return (
                "warning",
                "The provider refused the request; it was asked again without earlier turns",
                None,
            )
        case "context_left_out":
            return "warning", "The provider refused the request; it was asked again without its context", None
        case "limit_reached":
            return "warning", f"The turn ended at a limit: {params.get('limit')}", None
        case "hook_stop_limit":
            return "warning", "Hooks continued the turn as often as they may", None
        case "compaction_blocked":
            return "warning", "A hook refused the compaction", _hook(params)
        case "events_lost":
            return "error", "A damaged part of this chat could not be repaired", None
        case "patch_removed":
            return "warning", "A recorded change was removed", None
    return "info", code.replace("_", " ").capitalize(), None


def retry_words(error: JsonObject, attempt: int) -> Words:
    message = error.get("message")
    return (
        "warning",
        f"The model did not answer, asking again (attempt {attempt + 1})",
        message if isinstance(message, str) else None,
    )


def quoted(words: Words) -> str:
    """The notice as a message, for an editor that shows no notices."""
    severity, title, description = words
    return f"> **{severity.capitalize()}**: {title}" + (f". {description}" if description else "") + "\n"


def _hook(params: JsonObject) -> str | None:
    hook = params.get("hook") or params.get("name")
    return f"From the hook {hook}." if hook else None


def _items(params: JsonObject) -> str | None:
    given: Any = params.get("items")
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    words = [str(item.get("message") or f"{item.get('type')}: {item.get('reason')}") for item in items]
    return "; ".join(words) or None
