"""From a settings file's text to checked values; a mistake is told with its line and remedy. Does no IO."""

from __future__ import annotations

from . import known
from .errors import SettingsError
from .key import Key, meant
from .keys import KEYS, TABLES
from .tables import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINES_SEARCHED, MAX_TEXT_SEARCHED = 250, 8 * 1024
"""Finding a key's line parses the file once for each line before it: a quarter of a second at this length."""


def parse(path: str, text: str, *, project: bool = False) -> dict[str, Any]:
    """Values by dotted key; raises for bad TOML, unknown names, wrong values."""
    try:
        tables = toml(path, text)
        found = _flatten(tables)
        for name, value in found.items():
            check(name, value, project=project)
        for named in known.NAMED.values():
            named.check_whole(tables.get(named.table, {}))
    except SettingsError as error:
        error.path = path
        if error.key is not None:
            error.line = _line_of(text, list(error.names or error.key.split(".")))
        raise
    return found


def toml(path: str, text: str) -> dict[str, Any]:
    """The tables as they stand, unchecked."""
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        # tomllib's message ends with the line and the column, but for this one place.
        end = f"(at line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))})"
        reason = str(error).replace("(at end of document)", end)
        raise SettingsError(None, f"is not valid TOML: {reason}", path=path) from error
    except RecursionError as error:
        raise SettingsError(None, "is nested too deeply", path=path) from error


def check(name: str, value: object, *, project: bool = False) -> Key:
    """The key called `name`, when it may stand in a file with this value."""
    key = known.find(name)
    if key is None or not key.files:
        raise unknown(name)
    if project and key.project == "never":
        raise SettingsError(
            name,
            "a project's file may not set this: it belongs to the user and holds for every project",
            hint="Set it in the user's config.toml",
        )
    if key.narrow(value) is None:
        raise unexpected(key, value, name)
    return key


def unknown(name: str) -> SettingsError:
    table, _, rest = name.partition(".")
    if rest and table in known.NAMED:
        return known.NAMED[table].unknown(rest)
    keys = [key.name for key in KEYS.values() if key.files]
    tables = [found for found in (*TABLES, *known.NAMED) if "." in found or not rest]
    hint = meant(name, [*keys, *tables]) or "docs/configuration.md lists the keys"
    return SettingsError(name, "there is no such setting", hint=hint)


def unexpected(key: Key, value: object, name: str) -> SettingsError:
    if isinstance(key, Field) and key.quiet:
        told = key.mistake(name, value) if key.mistake else None
        return told or SettingsError(name, f"expected {key.expected}")
    misfit = key.misfit(value) if key.is_list and isinstance(value, list) else None
    if misfit is not None:
        return SettingsError(name, f"expected {key.expected}, found {_shown(misfit[0])} in it")
    hint = meant(value, key.choices) if isinstance(value, str) else None
    return SettingsError(name, f"expected {key.expected}, found {_shown(value)}", hint=hint)


def _flatten(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by dotted key; a table that the settings do not have is refused as a whole."""
    found: dict[str, Any] = {}
    for name, value in tables.items():
        dotted = prefix + name
        if dotted in known.NAMED:
            found.update(known.NAMED[dotted].flat(value))
            continue
        if "." in name or ((dotted in TABLES) != isinstance(value, dict) and dotted not in KEYS):
            raise _misplaced(dotted)
        found.update(_flatten(value, dotted + ".") if dotted in TABLES else {dotted: value})
    return found


def _misplaced(dotted: str) -> SettingsError:
    if dotted in TABLES:
        return SettingsError(dotted, f"expected the table [{dotted}], found a value")
    return unknown(dotted)


def _line_of(text: str, names: list[str]) -> int | None:
    """The line where the key stands: the one that makes it appear when the file is read line by line.

    Lines within a value of several lines do not parse alone; such a value's first line is told.
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
        return toml("", text)
    except SettingsError:
        return None


def _has(tables: object, names: list[str]) -> bool:
    for name in names:
        if not isinstance(tables, dict) or name not in tables:
            return False
        tables = tables[name]
    return True


def _shown(value: object) -> str:
    """The value as the file has it, cut so that a message stays a line."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:  # Python refuses to spell the longest ones.
        return "a far larger number"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"
