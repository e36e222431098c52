"""What each error means in a sentence, and which errors a method may answer with."""

from __future__ import annotations

from sidecar_protocol.catalog import Method
from sidecar_protocol.errors import CODES

MEANINGS: dict[str, str] = {
    "parse_error": "The frame is no JSON. The reply's id is null.",
    "invalid_request": "JSON, and no message: a batch, a missing `method`, an unusable id.",
    "method_not_found": "There is no such method.",
    "invalid_params": "A parameter is missing, unknown or of the wrong type; the message names it.",
    "internal_error": "A defect of the sidecar; its log contains `ref`.",
    "overloaded": "Too much waits already; try again after `retryAfterMs`.",
    "not_found": "There is no such chat, turn, prompt, file, patch, question or blob.",
    "already_exists": "It would overwrite something that is there.",
    "turn_in_progress": "A turn runs, and the request does not go with that.",
    "not_initialized": "`initialize` comes first.",
    "already_initialized": "`initialize` came already.",
    "message_too_large": "A frame over the limit was skipped. The reply's id is null.",
    "cursor_expired": "Another epoch, or a seq ahead of the chat; `epoch` and `lastSeq` say where it is.",
    "deleted": "The chat was deleted; `chat/open` creates it again.",
    "precondition_failed": "Not as the request needs it: a revision, a version, the running turn, a file, the project.",
    "locked": "Another process writes to this chat, and cannot be asked for this or is silent; `owner` names it.",
    "request_closed": "The question was answered before; `outcome` tells how.",
    "provider_error": "The model's provider failed; `reason` tells how.",
    "context_budget": "It does not fit the model's window: `needed`, `available`.",
    "storage": "The database cannot be used; `reason`: full, readonly, corrupt, schema_newer, removed, replaced, io.",
    "shutting_down": "The sidecar is leaving.",
    "denied": "Policy forbids it.",
    "unsupported_version": "No version in common; `supported` lists what the sidecar speaks.",
    "request_cancelled": "The client cancelled the request.",
    "server_cancelled": "The sidecar cancelled the request; it may be sent again.",
}

_ANY = ["invalid_params", "internal_error", "shutting_down", "request_cancelled", "server_cancelled"]
_CHAT = ["not_found", "deleted", "locked", "storage", "overloaded"]
_OF_METHOD: dict[str, list[str]] = {
    "initialize": ["already_initialized", "unsupported_version"],
    "chat/fork": ["already_exists", "precondition_failed"],
    "chat/export": ["already_exists", "message_too_large"],
    "chat/import": ["already_exists"],
    "chat/rewind": ["turn_in_progress", "precondition_failed", "denied"],
    "prompt/send": ["turn_in_progress", "precondition_failed"],
    "prompt/edit": ["precondition_failed"],
    "prompt/remove": ["precondition_failed"],
    "turn/retry": ["turn_in_progress"],
    "files/open": ["precondition_failed", "denied"],
    "files/pin": ["precondition_failed", "denied"],
    "patches/apply": ["turn_in_progress", "precondition_failed", "denied"],
    "patches/export": ["already_exists", "message_too_large"],
    "patches/revert": ["turn_in_progress", "precondition_failed", "denied"],
    "git/diff": ["precondition_failed", "denied"],
    "permission/answer": ["not_found", "locked", "request_closed"],
    "input/answer": ["not_found", "locked", "request_closed"],
    "permissionRules/set": ["precondition_failed"],
    "permissionRules/remove": ["precondition_failed"],
    "events/read": ["cursor_expired"],
    "history/import": ["storage"],
    "blob/put": ["storage"],
    "blob/read": ["not_found", "storage"],
    "providers/configure": ["precondition_failed"],
    "settings/write": ["precondition_failed"],
    "doctor/report": ["already_exists"],
}


def errors_of(method: Method) -> list[str]:
    """The names of the errors that a client of this method should be ready for, in the vocabulary's order."""
    names = {*_ANY, *_OF_METHOD.get(method.name, [])}
    if method.scope == "chat":
        names.update(_CHAT)
    if not method.early:
        names.add("not_initialized")
    return [name for name in CODES if name in names]
