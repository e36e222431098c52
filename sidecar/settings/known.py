"""Every setting by its dotted name, be it of the table of keys or of a table that has a name of the user's."""

from __future__ import annotations

from .keys import KEYS
from .mcp import SERVERS
from .providers import PROVIDERS
from .tables import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .key import Key
    from .tables import Tables

NAMED: dict[str, Tables] = {tables.table: tables for tables in (PROVIDERS, SERVERS)}


def find(name: str) -> Key | None:
    """The key with this dotted name."""
    table, _, rest = name.partition(".")
    return NAMED[table].find(rest) if table in NAMED else KEYS.get(name)


def unit(name: str) -> str:
    """What a key is set aside or replaced with: its whole table `[TABLE.NAME]` where that counts as one."""
    table, _, rest = name.partition(".")
    whole = table in NAMED and NAMED[table].replaces
    return f"{table}.{rest.partition('.')[0]}" if whole else name


def shown(name: str, value: Any) -> Any:
    """The value as anybody may see it."""
    key = find(name)
    if not isinstance(key, Field) or key.masked is None or value is None:
        return value
    return key.masked(value)
