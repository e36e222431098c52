"""A chat's own configuration: its keys, what they may hold, and what is in force with the settings below."""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec

from ..model.events import encode
from ..model.failures import Refused, invalid

MAX_META_BYTES = 16 * 1024
"""`meta` is the app's own: room for labels and colours, not a second store."""

Gate = Literal["auto", "always", "never"]


class ToolChoice(msgspec.Struct, forbid_unknown_fields=True):
    allow: list[str] = []
    deny: list[str] = []


class Gates(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    open_files: Gate = "auto"
    patches: Gate = "auto"
    git_diff: Gate = "auto"
    retrieval: Gate = "auto"


class Budgets(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    per_file: int | None = None
    open_files: int | None = None
    diffs: int | None = None
    git_diff: int | None = None
    retrieval: int | None = None


class Compaction(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    enabled: bool = True
    background: float = 0.80
    blocking: float = 0.95
    postponed_until: int | None = None
    """How many turns the chat has when it may be compacted again."""


class ChatConfig(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Every key of section 6 of the contract; what a chat has not set is absent."""

    model: str | None = None
    engine: Literal["native"] | None = None
    effort: str | None = None
    instructions: str | None = None
    project_path: str | None = None
    mode: Literal["ask", "accept-edits", "read-only", "auto"] | None = None
    window: int | None = None
    output_reserve: int | None = None
    max_steps: int | None = None
    tools: ToolChoice | None = None
    gates: Gates | None = None
    exclude: list[str] | None = None
    budgets: Budgets | None = None
    compaction: Compaction | None = None
    mcp_servers: list[dict[str, Any]] | None = None
    extra_folders: list[str] | None = None
    meta: Any = None


KEYS = {field.encode_name for field in msgspec.structs.fields(ChatConfig)}

LAYERED = ("gates", "budgets", "compaction")
"""Objects in which a chat sets single keys: what it leaves out is as the settings say."""


def checked(changes: dict[str, Any]) -> dict[str, Any]:
    """`changes` as they may be stored; null clears a key. Raises what is wrong, by name."""
    for key in changes:
        if key not in KEYS:
            raise _unknown(key)
    try:
        config = msgspec.convert(changes, ChatConfig)
    except msgspec.ValidationError as error:
        raise _mistyped(error) from error
    for key, value in (
        ("window", config.window),
        ("maxSteps", config.max_steps),
        ("outputReserve", config.output_reserve),
    ):
        if value is not None and value < 1:
            raise invalid(f"set.{key}", "a positive number")
    if config.compaction:
        _check_ratios(config.compaction)
    if config.mcp_servers:
        from ..tools.mcp import parse_servers

        parse_servers(config.mcp_servers, "set.mcpServers")
    for place, folder in enumerate(config.extra_folders or ()):
        if not os.path.isabs(folder) or "\0" in folder:
            raise invalid(f"set.extraFolders[{place}]", "an absolute path")
    if len(encode(config.meta)) > MAX_META_BYTES:
        raise invalid("set.meta", f"at most {MAX_META_BYTES} bytes of JSON")
    return changes


def _check_ratios(compaction: Compaction) -> None:
    for name, value in (("background", compaction.background), ("blocking", compaction.blocking)):
        if not 0 < value <= 1:
            raise invalid(f"set.compaction.{name}", "a share of the window, from 0 to 1: 0.8 is four fifths")


def merged(stored: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The chat's own keys after a change."""
    return {key: value for key, value in {**stored, **changes}.items() if value is not None}


def effective(defaults: dict[str, Any], stored: dict[str, Any], project_path: str | None) -> dict[str, Any]:
    """What is in force for a chat: its own keys over the settings', also within the objects that have defaults."""
    own = {**stored, "projectPath": project_path}
    for key in LAYERED:
        if key in defaults:
            own[key] = {**defaults[key], **merged({}, stored.get(key) or {})}
    return merged(defaults, own)


def _unknown(key: str) -> Refused:
    from difflib import get_close_matches

    near = get_close_matches(key, sorted(KEYS), n=2)
    nearest = " or ".join(f"`{name}`" for name in near)
    remedy = f"did you mean {nearest}?" if near else f"known keys: {', '.join(sorted(KEYS))}"
    return Refused(
        "invalid_params",
        f"`set.{key}` is no key of a chat's configuration; {remedy}",
        params={"field": f"set.{key}", "nearest": near[0] if near else None},
    )


def _mistyped(error: msgspec.ValidationError) -> Refused:
    expected, _, path = str(error).partition(" - at `$.")
    return invalid(f"set.{path.rstrip('`')}" if path else "set", expected)
