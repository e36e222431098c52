"""The settings in force, by name and type, each with the layer that it comes from, however they were read.

`tests/settings` holds these classes and the table in `keys` to one another.
"""

from __future__ import annotations

from . import providers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, NoReturn

    from .keys import Value

    Layer = Literal["default", "user", "project", "file", "environment", "command line"]
    Mode = Literal["ask", "accept-edits", "read-only", "auto"]
    Level = Literal["error", "warn", "info", "debug", "trace"]


class Group:
    """The settings under one prefix: set once, equal when all are."""

    __slots__: tuple[str, ...] = ()
    prefix = ""

    def __init__(self, values: Mapping[str, Value]) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, values[self.prefix + name])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings do not change once they are read: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, n) == getattr(other, n) for n in self.__slots__
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Session(Group):
    __slots__ = ("max_steps", "retention_days")
    prefix = "session."
    retention_days: int
    max_steps: int


class Log(Group):
    __slots__ = ("file", "level")
    prefix = "log."
    level: Level
    file: str | None


class Store(Group):
    __slots__ = ("busy_timeout", "data_dir")
    prefix = "store."
    data_dir: str
    busy_timeout: float


class Settings(Group):
    """All settings. `version` changes with any file that was read; `warnings` tells what was left aside.

    `providers` holds what the tables `[providers.NAME]` say, by name and key, with the secrets.
    """

    __slots__ = (
        "_layers",
        "chat_id",
        "engine",
        "log",
        "mode",
        "model",
        "providers",
        "session",
        "store",
        "titles",
        "version",
        "warnings",
    )
    model: str | None
    engine: Literal["native"]
    mode: Mode
    titles: Literal["words", "model"]
    chat_id: str | None
    session: Session
    log: Log
    store: Store
    providers: Mapping[str, Mapping[str, Any]]
    version: str
    warnings: tuple[str, ...]
    _layers: dict[str, tuple[Value, Layer]]

    def __init__(
        self, layers: dict[str, tuple[Value, Layer]], version: str, warnings: tuple[str, ...] = ()
    ) -> None:
        values = {key: value for key, (value, _) in layers.items()}
        groups: dict[str, object] = {"session": Session(values), "log": Log(values), "store": Store(values)}
        groups["providers"] = providers.by_name(values)
        fields = {**values, **groups, "_layers": layers, "version": version, "warnings": warnings}
        for name in self.__slots__:
            object.__setattr__(self, name, fields[name])

    def values(self) -> dict[str, tuple[Value, Layer]]:
        """Every key with its value and its layer, in the table's order; secrets are masked."""
        return {key: (providers.shown(key, value), layer) for key, (value, layer) in self._layers.items()}

    def __repr__(self) -> str:
        return f"Settings({self.values()!r})"

    def origin(self, key: str) -> Layer:
        """The layer that a key's value comes from."""
        return self._layers[key][1]
