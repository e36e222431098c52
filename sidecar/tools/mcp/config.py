"""The MCP servers that a chat's configuration or the settings name. Starts nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ...model.failures import Refused, invalid_param
from ...system.lazy import lazy_module

if TYPE_CHECKING:
    from ...text import expected
else:
    expected = lazy_module("sidecar.text.expected")

MAX_SERVERS = 32
"""Servers per chat: more are a mistake, and each may be a process."""

MAX_VALUES = 256
"""Arguments, variables or headers of one server."""

MAX_TEXT = 32 * 1024
"""Characters of one argument or value; the kernel accepts 128 KiB."""

DEFAULT_CALL_TIMEOUT_MS = 60_000
"""Milliseconds for one tool call, unless the server's entry says otherwise."""

DEFAULT_START_TIMEOUT_MS = 30_000
"""Milliseconds for the start; `npx` and the like first download what they run."""

MAX_TIMEOUT_MS = 3_600_000
"""One hour: nobody waits longer for a tool."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_VARIABLE = re.compile(r"[^=\0]+\Z")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")


class ServerConfig(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A server that is started (`command`) or connected to (`url`). Equal entries are the same server, in any chat."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    timeout_ms: int = DEFAULT_CALL_TIMEOUT_MS
    start_timeout_ms: int = DEFAULT_START_TIMEOUT_MS
    enabled: bool = True

    def __repr__(self) -> str:
        """Only the name: variables, headers and arguments may be secrets."""
        return f"ServerConfig({self.name!r})"

    @property
    def key(self) -> bytes:
        """The identity of this server; entries with equal keys share one connection."""
        return msgspec.json.encode(self, order="deterministic")


KEYS = tuple(field.encode_name for field in msgspec.structs.fields(ServerConfig))


def parse_servers(raw: Sequence[Mapping[str, object]], field: str) -> list[ServerConfig]:
    """Return the servers that `raw` names; raise an error that names the wrong entry in `field`."""
    if not isinstance(raw, list):
        raise invalid_param(field, "a list of servers")
    if len(raw) > MAX_SERVERS:
        raise invalid_param(field, f"at most {MAX_SERVERS} servers")
    configs: list[ServerConfig] = []
    for index, entry in enumerate(raw):
        config = _parse_server(entry, f"{field}[{index}]")
        if any(config.name == other.name for other in configs):
            raise invalid_param(
                f"{field}[{index}].name", f"another name: there is a server {config.name!r} already"
            )
        configs.append(config)
    return configs


def _parse_server(entry: Any, field: str) -> ServerConfig:
    if not isinstance(entry, dict):
        raise invalid_param(
            field, 'an object such as {"name": "files", "command": "npx", "args": ["some-server"]}'
        )
    for key in entry:
        if key not in KEYS:
            raise invalid_param(f"{field}.{key}", f"no such key; known are {', '.join(KEYS)}")
    present = {key: value for key, value in entry.items() if value is not None}
    try:
        config = msgspec.convert(present, ServerConfig)
    except msgspec.ValidationError as error:
        raise _type_error(error, field) from error
    _check(config, field)
    return config


def _type_error(error: msgspec.ValidationError, field: str) -> Refused:
    wrong = expected.explain_mismatch(ServerConfig, str(error))
    return invalid_param(f"{field}.{wrong.field}" if wrong.field else field, wrong.allowed, wrong.words)


def _check(config: ServerConfig, field: str) -> None:
    if not _NAME.match(config.name):
        raise invalid_param(f"{field}.name", "1 to 64 letters, digits, _ or -")
    if (config.command is None) == (config.url is None):
        raise invalid_param(field, "either `command`, for a server to start, or `url`, for one to reach")
    for key, value in (("args", config.args), ("env", config.env), ("cwd", config.cwd)):
        if value and config.command is None:
            raise invalid_param(f"{field}.{key}", "goes with `command` only")
    if config.headers and config.url is None:
        raise invalid_param(f"{field}.headers", "goes with `url` only")
    for key, limit in (("timeoutMs", config.timeout_ms), ("startTimeoutMs", config.start_timeout_ms)):
        if not 1 <= limit <= MAX_TIMEOUT_MS:
            raise invalid_param(f"{field}.{key}", f"milliseconds from 1 to {MAX_TIMEOUT_MS}")
    if config.url is not None:
        _check_url(config.url, f"{field}.url")
    _check_texts(config, field)


def _check_url(url: str, field: str) -> None:
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url or len(url) > MAX_TEXT:
        raise invalid_param(field, "an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise invalid_param(field, "an address without a login; say `headers` instead")


def _check_texts(config: ServerConfig, field: str) -> None:
    if config.command is not None and not _is_plain(config.command, empty=False):
        raise invalid_param(f"{field}.command", "a program's name or path")
    if config.cwd is not None and not (_is_plain(config.cwd, empty=False) and os.path.isabs(config.cwd)):
        raise invalid_param(f"{field}.cwd", "an absolute path")
    if len(config.args) > MAX_VALUES or not all(map(_is_plain, config.args)):
        raise invalid_param(f"{field}.args", f"at most {MAX_VALUES} texts without null characters")
    _check_pairs(config.env, f"{field}.env", _VARIABLE, _is_plain)
    _check_pairs(config.headers, f"{field}.headers", _HEADER, _is_header_value)


def _check_pairs(
    pairs: dict[str, str], field: str, name: re.Pattern[str], allows: Callable[[str], bool]
) -> None:
    if len(pairs) > MAX_VALUES:
        raise invalid_param(field, f"at most {MAX_VALUES} of them")
    for key, value in pairs.items():
        if not name.match(key):
            raise invalid_param(field, f"no name is {key!r}")
        if not allows(value):
            raise invalid_param(f"{field}.{key}", "a text without control characters, not too long")


def _is_plain(text: str, empty: bool = True) -> bool:
    return "\0" not in text and len(text) <= MAX_TEXT and (empty or bool(text.strip()))


def _is_header_value(text: str) -> bool:
    return len(text) <= MAX_TEXT and bool(_HEADER_VALUE.match(text))
