"""Every setting by its dotted name, in the table of keys or in a table that the user names."""

from __future__ import annotations

from .adapter_keys import ADAPTER_TABLES
from .engine_keys import ENGINE_TABLES
from .keys import KEYS
from .mcp import SERVER_TABLES
from .providers import PROVIDER_TABLES
from .tables import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .key import SettingKey
    from .tables import NamedTables

NAMED_TABLES: dict[str, NamedTables] = {
    tables.table: tables for tables in (PROVIDER_TABLES, SERVER_TABLES, ADAPTER_TABLES, ENGINE_TABLES)
}


def find_key(name: str) -> SettingKey | None:
    """Return the key with this dotted name."""
    table, _, rest = name.partition(".")
    return KEYS.get(name) or (NAMED_TABLES[table].find(rest) if table in NAMED_TABLES else None)


def override_unit(name: str) -> str:
    """Return what is withheld or replaced as a unit with a key: its whole table `[TABLE.NAME]` where that counts as
    one.
    """
    table, _, rest = name.partition(".")
    whole = table in NAMED_TABLES and NAMED_TABLES[table].replaces
    return f"{table}.{rest.partition('.')[0]}" if whole else name


def masked_value(name: str, value: Any) -> Any:
    """Return the value without secrets."""
    key = find_key(name)
    if not isinstance(key, Field) or key.masked is None or value is None:
        return value
    return key.masked(value)
