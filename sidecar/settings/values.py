"""The effective settings, by name and type, each with the layer that it comes from. Does not know how they were read.

A test in `tests/unit/settings` keeps these classes and the table in `keys` consistent.
"""

from __future__ import annotations

from . import known, mcp
from .keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, NoReturn, Self

    from ..system.choices import GateSwitch, LogLevel, Mode, Sandbox
    from .files import FileScope
    from .key import Value

    Rule = tuple[FileScope, str, str, str]
    Layer = Literal["default", "user", "project", "file", "environment", "command line"]
    Switch = Literal["on", "off"]


class Group:
    """The settings under one prefix: immutable, compared by value. The annotated members are the settings."""

    prefix = ""

    def __init__(self, values: Mapping[str, object]) -> None:
        for name in self.names():
            object.__setattr__(self, name, values[self.prefix + name])

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls.__annotations__)

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return the defaults, except for these values."""
        return cls({**default_values(), **{cls.prefix + name: value for name, value in values.items()}})

    def replaced(self, **values: object) -> Self:
        """Return the same settings with these values."""
        kept = {name: getattr(self, name) for name in self.names()}
        return type(self)({self.prefix + name: value for name, value in {**kept, **values}.items()})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings do not change once they are read: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, n) == getattr(other, n) for n in self.names())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.names())
        return f"{type(self).__name__}({fields})"


def default_values() -> dict[str, Value]:
    return {key.name: key.default for key in KEYS.values()}


class SessionSettings(Group):
    prefix = "session."
    retention_days: int
    sent_days: int
    max_steps: int
    max_seconds: float
    max_tokens: int
    snapshot_interval: int
    max_snapshots: int


class PermissionSettings(Group):
    """All rules together; `Settings.permission_rules` returns the origin of each."""

    prefix = "permissions."
    allow: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    expiry: float


class ToolSettings(Group):
    prefix = "tools."
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    environment: tuple[str, ...]
    readable: tuple[str, ...]
    max_processes: int
    max_memory_bytes: int
    max_tmp_bytes: int


class OpenFileSettings(Group):
    prefix = "open_files."
    max_recent: int
    max_pinned: int
    max_file_bytes: int


class PatchSettings(Group):
    prefix = "patches."
    max_entries: int
    max_bytes: int


class GateSettings(Group):
    prefix = "context.gates."
    open_files: GateSwitch
    patches: GateSwitch
    git_diff: GateSwitch
    retrieval: GateSwitch


class ContextSettings(Group):
    """The token limit of each kind of text."""

    prefix = "context."
    per_file: int
    open_files: int
    diffs: int
    git_diff: int
    retrieval: int
    rules: int
    output_reserve: int
    gates: GateSettings

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__({**values, "context.gates": GateSettings(values)})


class CompactionSettings(Group):
    """Shares of the context window, and turns."""

    prefix = "compaction."
    enabled: bool
    background: float
    blocking: float
    target: float
    keep_turns: int


class RuleSettings(Group):
    """Instruction rules; those about permissions are `PermissionSettings`."""

    prefix = "rules."
    enabled: bool
    paths: tuple[str, ...]


class IndexSettings(Group):
    """The index: bytes, days, lines and hits."""

    prefix = "index."
    enabled: bool
    inline_max: int
    max_output_size: int
    preview_tail_lines: int
    chunk_bytes: int
    retrieval_limit: int
    retention_days: int
    max_bytes: int


class HookSettings(Group):
    prefix = "hooks."
    enabled: bool
    claude_settings: bool
    paths: tuple[str, ...]


class FetchSettings(Group):
    """Fetching web pages, and their cache."""

    prefix = "fetch."
    enabled: bool
    cache_enabled: bool
    cache_ttl: float
    cache_max_bytes: int
    allow_private: tuple[str, ...]


class RoutingSettings(Group):
    """Which calls are redirected to a better tool."""

    prefix = "routing."
    big_reads: Switch
    big_reads_bytes: int
    fetches: Switch
    noisy_commands: Switch
    noisy_programs: tuple[str, ...]
    long_listings: Switch
    long_listings_max: int


class AdaptersSettings(Group):
    """Coding agents. `Settings.for_adapter` returns what is set for one of them."""

    prefix = "adapters."
    auto_detect: bool
    default: str | None
    log_level: LogLevel


class AdapterSettings:
    """What is set for one coding agent."""

    enabled: bool
    sandbox_tools: bool
    index: bool
    retention_days: int
    max_output_size: int

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


class LogSettings(Group):
    prefix = "log."
    level: LogLevel
    file: str | None


class ProjectFileSettings(Group):
    """What is stored in the project itself."""

    prefix = "project."
    files: bool


class StoreSettings(Group):
    prefix = "store."
    data_dir: str
    busy_timeout: float


GROUPS = (
    SessionSettings,
    PermissionSettings,
    ToolSettings,
    OpenFileSettings,
    PatchSettings,
    ContextSettings,
    CompactionSettings,
    RuleSettings,
    HookSettings,
    RoutingSettings,
    IndexSettings,
    FetchSettings,
    AdaptersSettings,
    ProjectFileSettings,
    LogSettings,
    StoreSettings,
)


_SECRET_WORDS = ("key", "token", "secret", "pass", "auth", "credential", "cookie")
"""In the names of headers and variables."""


class Settings(Group):
    """All settings. `version` changes with any file that was read; `warnings` say what was ignored.

    `providers` and `mcp` hold the tables `[providers.NAME]` and `[mcp.NAME]`, by name and key, with the secrets.
    `agents` holds the tables `[adapters.NAME]`, `engine_agents` the tables `[engines.NAME]`.
    """

    model: str | None
    engine: str
    mode: Mode
    sandbox: Sandbox
    titles: Literal["words", "model"]
    chat_id: str | None
    session: SessionSettings
    permissions: PermissionSettings
    tools: ToolSettings
    open_files: OpenFileSettings
    patches: PatchSettings
    context: ContextSettings
    compaction: CompactionSettings
    rules: RuleSettings
    hooks: HookSettings
    routing: RoutingSettings
    index: IndexSettings
    fetch: FetchSettings
    adapters: AdaptersSettings
    project: ProjectFileSettings
    log: LogSettings
    store: StoreSettings
    providers: Mapping[str, Mapping[str, Any]]
    mcp: Mapping[str, Mapping[str, Any]]
    agents: Mapping[str, Mapping[str, Any]]
    engine_agents: Mapping[str, Mapping[str, Any]]
    version: str
    warnings: tuple[str, ...]
    _layers: dict[str, tuple[Value, Layer]]
    _rules: tuple[Rule, ...]

    def __init__(
        self,
        layers: dict[str, tuple[Value, Layer]],
        version: str,
        warnings: tuple[str, ...] = (),
        rules: tuple[Rule, ...] = (),
    ) -> None:
        values = {key: value for key, (value, _) in layers.items()}
        held: dict[str, object] = {group.prefix[:-1]: group(values) for group in GROUPS}
        held.update({tables.member: tables.by_name(values) for tables in known.NAMED_TABLES.values()})
        held.update({"_layers": layers, "_rules": rules, "version": version, "warnings": warnings})
        fields = {**values, **held}
        for name in self.names():
            object.__setattr__(self, name, fields[name])

    def permission_rules(self) -> tuple[Rule, ...]:
        """Return the rules of every file in force: its scope, its effect, its text, and its file.

        They all apply, so that a project cannot remove what the user denies.
        """
        return self._rules

    def mcp_servers(self) -> list[dict[str, Any]]:
        """Return the MCP servers, with their secrets, as the `mcpServers` of a chat would name them."""
        return mcp.server_entries(self.mcp)

    def for_adapter(self, name: str) -> AdapterSettings:
        """Return what is set for this coding agent."""
        fields = known.NAMED_TABLES["adapters"].fields
        return AdapterSettings(
            {key: field.default for key, field in fields.items()} | dict(self.agents.get(name, {}))
        )

    def agent_retention(self) -> dict[str, int]:
        """Return the days after which the sessions of coding agents are purged, of those that have their own."""
        days = {name: self.for_adapter(name).retention_days for name in self.agents}
        return {name: number for name, number in days.items() if number}

    def log_level(self, frontend: str | None) -> LogLevel:
        """Return how detailed the log is; a coding agent shows that of its servers, or keeps it."""
        if frontend == "mcp" and self.origin("log.level") == "default":
            return self.adapters.log_level
        return self.log.level

    def secrets(self) -> list[str]:
        """Return the keys of all providers, and the values of headers and variables with names of secrets."""
        tables = [*self.providers.values(), *self.mcp.values(), *self.engine_agents.values()]
        found = [table["api_key"] for table in tables if table.get("api_key")]
        for table in tables:
            for name, value in [*(table.get("headers") or {}).items(), *(table.get("env") or {}).items()]:
                if any(word in name.lower() for word in _SECRET_WORDS):
                    # Of "Bearer KEY" the key alone as well.
                    found += [value, value.rpartition(" ")[2]]
        return found

    def values_and_layers(self) -> dict[str, tuple[Value, Layer]]:
        """Return every key with its value and its layer, in the order of the table; secrets are masked."""
        return {key: (known.masked_value(key, value), layer) for key, (value, layer) in self._layers.items()}

    def __repr__(self) -> str:
        return f"Settings({self.values_and_layers()!r})"

    def origin(self, key: str) -> Layer:
        """Return the layer that the value of a key comes from."""
        return self._layers[key][1]


def settings_of(values: Mapping[str, Value]) -> Settings:
    """Return the defaults, except for these values, by key."""
    return Settings({key: (value, "default") for key, value in {**default_values(), **values}.items()}, "")
