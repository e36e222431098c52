"""The settings in force, by name and type, each with the layer that it comes from, however they were read.

`tests/settings` holds these classes and the table in `keys` to one another.
"""

from __future__ import annotations

from . import known, mcp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, NoReturn

    from .files import Scope
    from .key import Value

    Rule = tuple[Scope, str, str, str]
    Layer = Literal["default", "user", "project", "file", "environment", "command line"]
    Mode = Literal["ask", "accept-edits", "read-only", "auto"]
    Sandbox = Literal["auto", "require", "off"]
    Level = Literal["error", "warn", "info", "debug", "trace"]
    Gate = Literal["auto", "always", "never"]
    Switch = Literal["on", "off"]


class Group:
    """The settings under one prefix: set once, equal when all are."""

    __slots__: tuple[str, ...] = ()
    prefix = ""

    def __init__(self, values: Mapping[str, object]) -> None:
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
    __slots__ = (
        "max_seconds",
        "max_snapshots",
        "max_steps",
        "max_tokens",
        "retention_days",
        "snapshot_interval",
    )
    prefix = "session."
    retention_days: int
    max_steps: int
    max_seconds: float
    max_tokens: int
    snapshot_interval: int
    max_snapshots: int


class Permissions(Group):
    """All rules together; `Settings.permission_rules` tells whose each is."""

    __slots__ = ("allow", "ask", "deny", "expiry")
    prefix = "permissions."
    allow: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    expiry: float


class Tools(Group):
    __slots__ = ("allow", "deny")
    prefix = "tools."
    allow: tuple[str, ...]
    deny: tuple[str, ...]


class OpenFiles(Group):
    __slots__ = ("max_file_bytes", "max_pinned", "max_recent")
    prefix = "open_files."
    max_recent: int
    max_pinned: int
    max_file_bytes: int


class Patches(Group):
    __slots__ = ("max_bytes", "max_entries")
    prefix = "patches."
    max_entries: int
    max_bytes: int


class Gates(Group):
    __slots__ = ("git_diff", "open_files", "patches", "retrieval")
    prefix = "context.gates."
    open_files: Gate
    patches: Gate
    git_diff: Gate
    retrieval: Gate


class Context(Group):
    """The most tokens that each kind of text may take."""

    __slots__ = (
        "diffs",
        "gates",
        "git_diff",
        "open_files",
        "output_reserve",
        "per_file",
        "retrieval",
        "rules",
    )
    prefix = "context."
    per_file: int
    open_files: int
    diffs: int
    git_diff: int
    retrieval: int
    rules: int
    output_reserve: int
    gates: Gates

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__({**values, "context.gates": Gates(values)})


class Compaction(Group):
    """Shares of the window, and turns."""

    __slots__ = ("background", "blocking", "enabled", "keep_turns", "target")
    prefix = "compaction."
    enabled: bool
    background: float
    blocking: float
    target: float
    keep_turns: int


class Rules(Group):
    """Instruction rules; those about permissions are `Permissions`."""

    __slots__ = ("enabled", "paths")
    prefix = "rules."
    enabled: bool
    paths: tuple[str, ...]


class Index(Group):
    """What is kept out of the window: bytes, days, lines and hits."""

    __slots__ = (
        "chunk_bytes",
        "enabled",
        "inline_max",
        "max_bytes",
        "max_output_size",
        "preview_tail_lines",
        "retention_days",
        "retrieval_limit",
    )
    prefix = "index."
    enabled: bool
    inline_max: int
    max_output_size: int
    preview_tail_lines: int
    chunk_bytes: int
    retrieval_limit: int
    retention_days: int
    max_bytes: int


class Hooks(Group):
    __slots__ = ("claude_settings", "enabled", "paths")
    prefix = "hooks."
    enabled: bool
    claude_settings: bool
    paths: tuple[str, ...]


class Fetch(Group):
    """Fetching pages of the web, and the cache of them."""

    __slots__ = ("allow_private", "cache_enabled", "cache_max_bytes", "cache_ttl", "enabled")
    prefix = "fetch."
    enabled: bool
    cache_enabled: bool
    cache_ttl: float
    cache_max_bytes: int
    allow_private: tuple[str, ...]


class Routing(Group):
    """Which calls are shown a better way."""

    __slots__ = (
        "big_reads",
        "big_reads_bytes",
        "fetches",
        "long_listings",
        "long_listings_max",
        "noisy_commands",
        "noisy_programs",
    )
    prefix = "routing."
    big_reads: Switch
    big_reads_bytes: int
    fetches: Switch
    noisy_commands: Switch
    noisy_programs: tuple[str, ...]
    long_listings: Switch
    long_listings_max: int


class Log(Group):
    __slots__ = ("file", "level")
    prefix = "log."
    level: Level
    file: str | None


class Project(Group):
    """What is kept in the project itself."""

    __slots__ = ("files",)
    prefix = "project."
    files: bool


class Store(Group):
    __slots__ = ("busy_timeout", "data_dir")
    prefix = "store."
    data_dir: str
    busy_timeout: float


GROUPS = (
    Session,
    Permissions,
    Tools,
    OpenFiles,
    Patches,
    Context,
    Compaction,
    Rules,
    Hooks,
    Routing,
    Index,
    Fetch,
    Project,
    Log,
    Store,
)


class Settings(Group):
    """All settings. `version` changes with any file that was read; `warnings` tells what was left aside.

    `providers` and `mcp` hold what the tables `[providers.NAME]` and `[mcp.NAME]` say, by name and key, with the
    secrets.
    """

    __slots__ = (
        "_layers",
        "_rules",
        "chat_id",
        "compaction",
        "context",
        "engine",
        "fetch",
        "hooks",
        "index",
        "log",
        "mcp",
        "mode",
        "model",
        "open_files",
        "patches",
        "permissions",
        "project",
        "providers",
        "routing",
        "rules",
        "sandbox",
        "session",
        "store",
        "titles",
        "tools",
        "version",
        "warnings",
    )
    model: str | None
    engine: Literal["native"]
    mode: Mode
    sandbox: Sandbox
    titles: Literal["words", "model"]
    chat_id: str | None
    session: Session
    permissions: Permissions
    tools: Tools
    open_files: OpenFiles
    patches: Patches
    context: Context
    compaction: Compaction
    rules: Rules
    hooks: Hooks
    routing: Routing
    index: Index
    fetch: Fetch
    project: Project
    log: Log
    store: Store
    providers: Mapping[str, Mapping[str, Any]]
    mcp: Mapping[str, Mapping[str, Any]]
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
        held.update({name: tables.by_name(values) for name, tables in known.NAMED.items()})
        held.update({"_layers": layers, "_rules": rules, "version": version, "warnings": warnings})
        fields = {**values, **held}
        for name in self.__slots__:
            object.__setattr__(self, name, fields[name])

    def permission_rules(self) -> tuple[Rule, ...]:
        """The rules of every file that is in force: whose it is, its effect, its text, and the file it stands in.

        They all hold, so that a project takes away nothing that the user denies.
        """
        return self._rules

    def mcp_servers(self) -> list[dict[str, Any]]:
        """The MCP servers, with their secrets, as a chat's `mcpServers` would name them."""
        return mcp.entries(self.mcp)

    def values(self) -> dict[str, tuple[Value, Layer]]:
        """Every key with its value and its layer, in the table's order; secrets are masked."""
        return {key: (known.shown(key, value), layer) for key, (value, layer) in self._layers.items()}

    def __repr__(self) -> str:
        return f"Settings({self.values()!r})"

    def origin(self, key: str) -> Layer:
        """The layer that a key's value comes from."""
        return self._layers[key][1]
