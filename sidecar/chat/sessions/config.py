"""A chat's own configuration: its keys, their allowed values, and the effective values together with the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
from sidecar_protocol.limits import MAX_META_BYTES

from ...context import block_names
from ...context.block_names import may_name_file
from ...model import JsonObject
from ...model.chats import (
    Budgets,
    CompactionConfig,
    EffectiveConfig,
    GateSwitches,
    Mode,
    OwnConfig,
    ToolChoice,
)
from ...model.events import encode
from ...model.failures import Refused, invalid_param
from ...system.lazy import lazy_module
from ...text.suggest import did_you_mean
from ..journal.project_identity import refuse_own_folder

if TYPE_CHECKING:
    from ...text import expected
    from ...tools import mcp
else:
    expected = lazy_module("sidecar.text.expected")
    mcp = lazy_module("sidecar.tools.mcp")


class ChatConfig(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Every key of `config` in `chat/open` and `chat/configure`; a key that the chat has not set is absent."""

    model: str | None = None
    engine: str | None = None
    effort: str | None = None
    instructions: str | None = None
    project_path: str | None = None
    mode: Mode | None = None
    window: int | None = None
    output_reserve: int | None = None
    max_steps: int | None = None
    tools: ToolChoice | None = None
    gates: GateSwitches | None = None
    exclude: list[str] | None = None
    budgets: Budgets | None = None
    compaction: CompactionConfig | None = None
    mcp_servers: list[JsonObject] | None = None
    extra_folders: list[str] | None = None
    meta: Any = None


KEYS = {field.encode_name for field in msgspec.structs.fields(ChatConfig)}

MERGED_KEYS: tuple[Literal["gates", "budgets", "compaction"], ...] = ("gates", "budgets", "compaction")
"""Objects in which a chat sets single keys; the settings supply the others."""


def checked_changes(
    changes: JsonObject, engines: Sequence[str], own_folders: Sequence[str] = ()
) -> OwnConfig:
    """Validate `changes` for storage; null clears a key. Raises with the name of a wrong key. `engines` are the
    allowed values of `engine`. No folder of the chat may be one of `own_folders` or lie in one.
    """
    for key in changes:
        if key not in KEYS:
            raise _unknown_key(key)
    try:
        config = msgspec.convert(changes, ChatConfig)
    except msgspec.ValidationError as error:
        raise _type_refusal(error) from error
    for key, value in (
        ("window", config.window),
        ("maxSteps", config.max_steps),
        ("outputReserve", config.output_reserve),
    ):
        if value is not None and value < 1:
            raise invalid_param(f"set.{key}", "a positive number")
    if config.engine is not None and config.engine not in engines:
        raise invalid_param("set.engine", f"one of {', '.join(engines)}")
    if config.compaction:
        _check_ratios(config.compaction)
    # Files may be named before they exist: the names of a chat hold for its later prompts.
    exclude = config.exclude or []
    block_names.check_names("set.exclude", exclude, [n for n in exclude if may_name_file(n)], excludes=True)
    if config.mcp_servers:
        mcp.parse_servers(config.mcp_servers, "set.mcpServers")
    folders = [(f"set.extraFolders[{at}]", folder) for at, folder in enumerate(config.extra_folders or ())]
    if config.project_path is not None:
        folders.append(("set.projectPath", config.project_path))
    for field, folder in folders:
        if not os.path.isabs(folder) or "\0" in folder:
            raise invalid_param(field, "an absolute path")
        refuse_own_folder(field, folder, own_folders)
    if len(encode(config.meta)) > MAX_META_BYTES:
        raise invalid_param("set.meta", f"at most {MAX_META_BYTES} bytes of JSON")
    if config.project_path is not None:  # one spelling of each project, as trust is bound to its path
        changes = {**changes, "projectPath": os.path.realpath(config.project_path)}
    return cast("OwnConfig", changes)


def _check_ratios(compaction: CompactionConfig) -> None:
    for name, value in (("background", compaction.background), ("blocking", compaction.blocking)):
        if not 0 < value <= 1:
            raise invalid_param(
                f"set.compaction.{name}", "a share of the window, from 0 to 1: 0.8 is four fifths"
            )


def merged(stored: OwnConfig, changes: OwnConfig) -> OwnConfig:
    """The chat's own keys after a change."""
    return cast("OwnConfig", _without_nulls({**stored, **changes}))


def _without_nulls(values: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def effective_config(
    defaults: EffectiveConfig, stored: OwnConfig, project_path: str | None
) -> EffectiveConfig:
    """The effective configuration of a chat: its own keys over the settings, merged within `MERGED_KEYS`."""
    base: dict[str, Any] = msgspec.to_builtins(defaults)
    stored = _valid_keys(stored)
    own = {**base, **stored, "projectPath": project_path}
    for key in MERGED_KEYS:
        own[key] = {**base[key], **_without_nulls(stored.get(key) or {})}
    return msgspec.convert(_without_nulls(own), EffectiveConfig)


def _valid_keys(stored: OwnConfig) -> OwnConfig:
    """The chat's own keys without those that a damaged or newer database has: the chat must stay usable."""
    try:
        msgspec.convert(stored, ChatConfig)
    except msgspec.ValidationError:
        return cast("OwnConfig", {key: value for key, value in stored.items() if _is_valid(key, value)})
    return stored


def _is_valid(key: str, value: Any) -> bool:
    try:
        msgspec.convert({key: value}, ChatConfig)
    except msgspec.ValidationError:
        return False
    return True


def _unknown_key(key: str) -> Refused:
    near = did_you_mean(key, sorted(KEYS), count=2)
    nearest = " or ".join(f"`{name}`" for name in near)
    remedy = f"did you mean {nearest}?" if near else f"known keys: {', '.join(sorted(KEYS))}"
    return Refused(
        "invalid_params",
        f"`set.{key}` is not a key of a chat's configuration; {remedy}",
        params={"field": f"set.{key}", "nearest": near[0] if near else None},
    )


def _type_refusal(error: msgspec.ValidationError) -> Refused:
    wrong = expected.explain_mismatch(ChatConfig, str(error))
    return invalid_param(f"set.{wrong.field}" if wrong.field else "set", wrong.allowed, wrong.words)
