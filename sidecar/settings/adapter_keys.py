"""Keys of `[adapters]` and of the tables `[adapters.NAME]`: coding agents that use Sidecar."""

from __future__ import annotations

from ..system.choices import AGENTS, LOG_LEVELS
from .errors import SettingsError
from .key import SettingKey
from .tables import Field, NamedTables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_AGENT = "mcp"
"""The name for clients that are none of them."""

_KIB = 1024

ADAPTERS = (
    SettingKey(
        "adapters.auto_detect",
        "flag",
        True,
        "Recognise an agent that does not give its name by its variables, folders and process.",
        project="never",
    ),
    SettingKey(
        "adapters.default",
        "text",
        None,
        "The agent that a client is which does not give its name.",
        choices=AGENTS,
        project="never",
        shown="none",
    ),
    SettingKey(
        "adapters.log_level",
        "text",
        "info",
        "How detailed the log of `sidecar mcp` is.",
        choices=LOG_LEVELS,
        project="never",
    ),
)


def _unknown_agent(name: str, table: Mapping[str, object]) -> SettingsError | None:
    if name in AGENTS or name == UNKNOWN_AGENT:
        return None
    return SettingsError(
        f"adapters.{name}", "there is no such agent", hint=f"It is one of {', '.join(AGENTS)}"
    )


ADAPTER_TABLES = NamedTables(
    "adapters",
    "agent",
    (
        Field(
            "enabled",
            "flag",
            True,
            "Serve this agent; otherwise its calls are refused and its hooks do nothing.",
        ),
        Field("sandbox_tools", "flag", True, "Let it run code and commands: `run_code` and `run_batch`."),
        Field("index", "flag", True, "Keep the long outputs of its own tools in the index."),
        Field(
            "retention_days",
            "integer",
            0,
            "Days without activity after which its sessions are purged; 0: as `session.retention_days` says.",
            high=36_500,
        ),
        Field(
            "max_output_size",
            "integer",
            256 * _KIB,
            "Maximum size of one stored output of its own tools, in characters; the rest is cut off.",
            low=_KIB,
            high=4096 * _KIB,
        ),
    ),
    _unknown_agent,
    project="never",
    member="agents",
    own=tuple(key.name.partition(".")[2] for key in ADAPTERS),
)
