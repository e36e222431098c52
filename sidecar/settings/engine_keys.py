"""The value of `engine`, and the tables `[engines.NAME]`: agents that run the turns of a chat (`acp:NAME`).

Starts nothing, and does not know which agents are installed.
"""

from __future__ import annotations

from .errors import SettingsError
from .mcp import are_arguments, is_environment
from .tables import DIGITS, LETTERS, Field, NamedTables, mask_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NATIVE_ENGINE = "native"

COPILOT_ENGINE = "copilot"

ENGINES = (NATIVE_ENGINE, COPILOT_ENGINE)
"""The engines that a setting may name, besides agents. `sidecar/engines/registry.py` has them: a test compares both."""

AGENT_PREFIX = "acp:"
"""Before the name of an agent that speaks the Agent Client Protocol, such as `acp:codex`."""

MAX_NAME = 64
_NAME = LETTERS | DIGITS | frozenset("_-")

DEFAULT_WINDOW = 100_000
"""Tokens: what the agents of the presets take at once, with space for their own instructions and tools."""


def is_engine(text: str) -> bool:
    """Return whether it can be the name of an engine; whether there is such an agent is not known here."""
    name = text.removeprefix(AGENT_PREFIX)
    return text in ENGINES or (name != text and 0 < len(name) <= MAX_NAME and _NAME.issuperset(name))


def _no_rule(name: str, table: Mapping[str, object]) -> SettingsError | None:
    return None


ENGINE_TABLES = NamedTables(
    "engines",
    "agent",
    (
        Field(
            "command",
            "text",
            None,
            "The program of the agent: a name on PATH, or a full path. Without it, that of the preset of this name.",
        ),
        Field(
            "args",
            "texts",
            (),
            "The arguments of `command`. They are shown; put secrets into `env`.",
            words='a list of texts, such as ["acp"]',
            fits=are_arguments,
        ),
        Field(
            "env",
            "text",
            None,
            "Further environment variables of the agent. Their values are never shown.",
            words="a table of variables and their text",
            fits=is_environment,
            masked=mask_each,
        ),
        Field(
            "login",
            "text",
            None,
            "The authentication method that the agent is asked to use when it wants a login.",
            shown="that of the preset",
        ),
        Field(
            "mode",
            "text",
            None,
            "The agent's own mode, by its id: what it does without asking.",
            shown="that of the preset",
        ),
        Field(
            "model",
            "text",
            None,
            "The model of the agent, by the agent's own name.",
            shown="the agent's choice",
        ),
        Field(
            "window",
            "integer",
            DEFAULT_WINDOW,
            "Tokens of the agent's context window: what a chat gives it of the past fits into this.",
            low=4000,
            high=10_000_000,
        ),
        Field(
            "start_timeout", "seconds", 60.0, "Maximum duration of the start of the agent.", low=1, high=600
        ),
    ),
    _no_rule,
    project="never",
    member="engine_agents",
)
