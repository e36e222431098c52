"""Parse the text of a settings file to validated values; errors name the line and the remedy. No I/O."""

from __future__ import annotations

from ..system.lazy import lazy_module
from . import known
from .errors import SettingsError
from .key import SettingKey, suggestion_for
from .keys import KEYS, TABLES
from .tables import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tomllib
    from typing import Any
else:
    tomllib = lazy_module("tomllib")

MAX_LINES_SEARCHED, MAX_TEXT_SEARCHED = 250, 8 * 1024
"""Finding the line of a key parses the file once for each line before it: a quarter of a second at this length."""


def parse(path: str, text: str, *, project: bool = False) -> dict[str, Any]:
    """Return values by dotted key; raise for invalid TOML, unknown names, wrong values."""
    try:
        tables = parse_toml(path, text)
        found = _flatten(tables)
        for name, value in found.items():
            check(name, value, project=project)
        for named in known.NAMED_TABLES.values():
            named.check_whole(tables.get(named.table, {}))
    except SettingsError as error:
        error.path = path
        if error.key is not None:
            error.line = _line_of(text, list(error.names or error.key.split(".")))
        raise
    return found


def parse_toml(path: str, text: str) -> dict[str, Any]:
    """Return the tables, without validation."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        # tomllib's message ends with the line and the column, except at this one place.
        end = f"(at line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))})"
        reason = str(error).replace("(at end of document)", end)
        raise SettingsError(None, f"is not valid TOML: {reason}", path=path) from error
    except RecursionError as error:
        raise SettingsError(None, "is nested too deeply", path=path) from error


def check(name: str, value: object, *, project: bool = False) -> SettingKey:
    """Return the key called `name`, when a file may set it to this value."""
    key = known.find_key(name)
    if key is None or not key.files:
        raise unknown_key(name)
    if project and key.project == "never":
        raise SettingsError(
            name,
            "a project's file may not set this: it belongs to the user and holds for every project",
            hint="Set it in the user's config.toml",
        )
    if key.narrow(value) is None:
        raise unexpected_value(key, value, name)
    return key


def unknown_key(name: str) -> SettingsError:
    table, _, rest = name.partition(".")
    if rest and table in known.NAMED_TABLES:
        return known.NAMED_TABLES[table].unknown(rest)
    keys = [key.name for key in KEYS.values() if key.files]
    tables = [found for found in (*TABLES, *known.NAMED_TABLES) if "." in found or not rest]
    hint = suggestion_for(name, [*keys, *tables]) or "docs/configuration.md lists the keys"
    return SettingsError(name, "there is no such setting", hint=hint)


def unexpected_value(key: SettingKey, value: object, name: str) -> SettingsError:
    if isinstance(key, Field) and key.quiet:
        told = key.mistake(name, value) if key.mistake else None
        return told or SettingsError(name, f"expected {key.expected}")
    misfit = key.misfit(value) if key.is_list and isinstance(value, list) else None
    if misfit is not None:
        return SettingsError(name, f"expected {key.expected}, found {_shown_value(misfit[0])} in it")
    hint = suggestion_for(value, key.choices) if isinstance(value, str) else None
    return SettingsError(name, f"expected {key.expected}, found {_shown_value(value)}", hint=hint)


def _flatten(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return values by dotted key; an unknown table is refused as a whole."""
    found: dict[str, Any] = {}
    for name, value in tables.items():
        dotted = prefix + name
        if dotted in known.NAMED_TABLES:
            found.update(known.NAMED_TABLES[dotted].flat(value))
            continue
        if "." in name or ((dotted in TABLES) != isinstance(value, dict) and dotted not in KEYS):
            raise _misplaced_key(dotted)
        found.update(_flatten(value, dotted + ".") if dotted in TABLES else {dotted: value})
    return found


def _misplaced_key(dotted: str) -> SettingsError:
    if dotted in TABLES:
        return SettingsError(dotted, f"expected the table [{dotted}], found a value")
    return unknown_key(dotted)


def _line_of(text: str, names: list[str]) -> int | None:
    """Return the line of the key: the one that makes it appear when the file is parsed line by line.

    Lines within a multi-line value do not parse alone; then the first line of the value is returned.
    """
    lines = text[:MAX_TEXT_SEARCHED].split("\n")[:MAX_LINES_SEARCHED]
    start = 1
    for count in range(1, len(lines) + 1):
        tables = _prefix("\n".join(lines[:count]))
        if tables is None:
            continue
        if _has(tables, names):
            return start
        start = count + 1
    return None


def _prefix(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml("", text)
    except SettingsError:
        return None


def _has(tables: object, names: list[str]) -> bool:
    for name in names:
        if not isinstance(tables, dict) or name not in tables:
            return False
        tables = tables[name]
    return True


def _shown_value(value: object) -> str:
    """Return the value as the file has it, cut so that a message stays on one line."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:  # Python refuses to convert the longest ones.
        return "a far larger number"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"
