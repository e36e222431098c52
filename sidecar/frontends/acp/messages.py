"""The parameters of the requests of editors, of both versions. Members that are not named here are ignored, as the
protocol asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model import JsonObject
from .greeting import META

AcpResult = Mapping[str, object]
"""The result of a request, as it is encoded; nothing reads it."""

Update = dict[str, object]
"""An update of a session, as it is encoded."""

Empty: AcpResult = {}


class Params(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    meta: Any = msgspec.field(default=None, name="_meta")

    @property
    def own(self) -> JsonObject:
        """What the client says to Sidecar alone: our member of `_meta`."""
        found = self.meta.get(META) if isinstance(self.meta, dict) else None
        return found if isinstance(found, dict) else {}


class InitializeParams(Params, frozen=True, kw_only=True):
    """`clientCapabilities` and `clientInfo` are named so in version 1, `capabilities` and `info` in version 2."""

    protocol_version: Any
    client_capabilities: JsonObject | None = None
    client_info: JsonObject | None = None
    capabilities: JsonObject | None = None
    info: JsonObject | None = None


class SessionParams(Params, frozen=True, kw_only=True):
    session_id: str


class SetupParams(Params, frozen=True, kw_only=True):
    """What `session/new`, `session/load` and `session/resume` share; version 2 and `session/resume` may omit the
    servers.
    """

    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[JsonObject] | None = None


class ExistingParams(SetupParams, frozen=True, kw_only=True):
    session_id: str
    replay_from: JsonObject | None = None


class ListParams(Params, frozen=True, kw_only=True):
    cwd: str | None = None
    cursor: str | None = None


class PromptParams(SessionParams, frozen=True, kw_only=True):
    prompt: list[JsonObject]


class SetModeParams(SessionParams, frozen=True, kw_only=True):
    mode_id: str


class SetOptionParams(SessionParams, frozen=True, kw_only=True):
    config_id: str
    value: Any = None


class AuthenticateParams(Params, frozen=True, kw_only=True):
    method_id: str


class AcpMethod(msgspec.Struct, frozen=True):
    """A method of the protocol, for the dispatcher."""

    name: str
    params: type[Params]


_BOTH: dict[str, type[Params]] = {
    "initialize": InitializeParams,
    "session/new": SetupParams,
    "session/list": ListParams,
    "session/resume": ExistingParams,
    "session/close": SessionParams,
    "session/delete": SessionParams,
    "session/prompt": PromptParams,
    "session/set_config_option": SetOptionParams,
}

_PARAMS: dict[int, dict[str, type[Params]]] = {
    1: {
        **_BOTH,
        "authenticate": AuthenticateParams,
        "logout": Params,
        "session/load": ExistingParams,
        "session/set_mode": SetModeParams,
    },
    2: {**_BOTH, "auth/login": AuthenticateParams, "auth/logout": Params},
}

METHODS: Mapping[int, Mapping[str, AcpMethod]] = {
    version: {name: AcpMethod(name, params) for name, params in table.items()}
    for version, table in _PARAMS.items()
}
"""The requests of clients, by version."""
