"""Errors in the codes and names of the protocol. Its codes mean other things than ours between -32000 and -32099."""

from __future__ import annotations

import re

from sidecar_protocol.errors import CODES, RpcError

from ...model.content import StoredError

NOT_FOUND = -32002
"""A session, or a file, that is not there."""

_KEPT = {
    CODES[name]
    for name in (
        "parse_error",
        "invalid_request",
        "method_not_found",
        "invalid_params",
        "internal_error",
        "request_cancelled",
    )
}

_TRANSLATED = {
    CODES["not_found"]: NOT_FOUND,
    CODES["deleted"]: NOT_FOUND,
    CODES["not_initialized"]: CODES["invalid_request"],
    CODES["already_exists"]: CODES["invalid_params"],
    CODES["message_too_large"]: CODES["invalid_request"],
}

_FIELDS = {
    "projectPath": "cwd",
    "set.projectPath": "cwd",
    "set.mcpServers": "mcpServers",
    "set.extraFolders": "additionalDirectories",
    "set.model": "value",
    "content": "prompt",
    "text": "prompt",
}
"""Our names of members, and those that the editor sent."""

_NAMED = re.compile(r"`((?:set\.)?[A-Za-z]+)(?=[`\[])")


def acp_error(error: RpcError) -> RpcError:
    """The error as an editor gets it: the nearest code of the protocol, and its own names of members."""
    code = error.code if error.code in _KEPT else _TRANSLATED.get(error.code, CODES["internal_error"])
    data = dict(error.data)
    params = data.get("params")
    if isinstance(params, dict) and isinstance(params.get("field"), str):
        data["params"] = {**params, "field": _renamed(f"`{params['field']}`").strip("`")}
    hint = f". {data['hint']}" if data.get("hint") else ""
    return RpcError(code, _renamed(error.message) + hint, data)


def turn_error(error: StoredError | None) -> RpcError:
    """The error that ended a turn, as the answer to its prompt."""
    if error is None:
        return RpcError(CODES["internal_error"], "The turn failed")
    return acp_error(RpcError(CODES.get(str(error.data.get("name", "")), 0), error.message, error.data))


def unknown_method(method: str) -> RpcError:
    return RpcError.named(
        "method_not_found", f"There is no method {method[:80]!r}", params={"method": method[:80]}
    )


def _renamed(text: str) -> str:
    return _NAMED.sub(lambda found: "`" + _FIELDS.get(found[1], found[1]), text)
