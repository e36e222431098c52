"""The table of settings: a key exists because it is in this table. Loading, validation, writing and the page
docs/configuration.md are derived from it. Knows nothing of files, layers or the values of the environment.
"""

from __future__ import annotations

from ..system.choices import LOG_LEVELS, MODES, SANDBOXES
from .adapter_keys import ADAPTERS
from .engine_keys import NATIVE_ENGINE, is_engine
from .hook_keys import HOOKS, ROUTING
from .index_keys import INDEX
from .key import SettingKey, is_plain
from .web_keys import FETCH
from .window_keys import COMPACTION, CONTEXT, RULES

MEMORY = ":memory:"
"""The data folder that means in memory: everything is lost at exit."""

TABLES = (
    "session",
    "permissions",
    "tools",
    "open_files",
    "patches",
    "context",
    "context.gates",
    "compaction",
    "rules",
    "hooks",
    "routing",
    "index",
    "fetch",
    "adapters",
    "project",
    "log",
    "store",
)

EFFECTS = ("allow", "ask", "deny")
"""What a permission rule does; each has its own list of rules, `permissions.EFFECT`."""

_RULES = 'a list of rules, such as ["run(git log *)", "edit(src/**)"]'
_TOOLS = 'a list of names of tools, such as ["read_file", "grep"]'
_DAY_S = 24 * 60 * 60
_KIB = 1024
_MIB = 1024 * _KIB


def is_rule(text: str) -> bool:
    """Return whether it has the form of a rule, KIND(PATTERN) or "*". This layer does not know its meaning."""
    kind, opening, rest = text.partition("(")
    named = kind != "" and all("a" <= char <= "z" or char == "-" for char in kind)
    shaped = named and opening != "" and rest.endswith(")") and rest[:-1].strip() != ""
    return text == "*" or (shaped and is_plain(text))


def is_variable(text: str) -> bool:
    """Return whether it names an environment variable that is not one of ours."""
    shaped = text.isascii() and text.replace("_", "a").isalnum() and not text[0].isdigit()
    return shaped and not text.startswith("SIDECAR_")


KEYS: dict[str, SettingKey] = {
    key.name: key
    for key in (
        SettingKey(
            "model",
            "text",
            None,
            "The model that answers, as `provider:model`. Default: a model of a provider with a key in the "
            "environment, else of a running Ollama, else the embedded one.",
            environment="SIDECAR_MODEL",
            shown="chosen automatically",
        ),
        SettingKey(
            "engine",
            "text",
            NATIVE_ENGINE,
            "The engine that runs a turn: Sidecar's own, GitHub Copilot, or an agent by its name (`acp:codex`).",
            words='"native", "copilot", or "acp:NAME" with the name of an agent',
            each=is_engine,
        ),
        SettingKey(
            "mode",
            "text",
            "ask",
            "What runs without asking: edits in the project (accept-edits), everything (auto; if a rule denies or asks "
            "for `run`, only commands that are understood). read-only denies changes.",
            choices=MODES,
        ),
        SettingKey(
            "sandbox",
            "text",
            "auto",
            "Run commands in bubblewrap where it works (auto), run none without it (require), or never use it (off).",
            choices=SANDBOXES,
        ),
        SettingKey(
            "titles",
            "text",
            "words",
            "Take a chat's title from the words of the first prompt, or from the model after the first turn.",
            choices=("words", "model"),
        ),
        SettingKey(
            "chat_id",
            "text",
            None,
            "The `chatId` of requests that have none.",
            environment="SIDECAR_CHAT_ID",
            files=False,
        ),
        SettingKey(
            "session.retention_days",
            "integer",
            0,
            "Days without activity after which a chat is purged; 0 keeps chats forever.",
            high=36_500,
            project="never",
        ),
        SettingKey(
            "session.sent_days",
            "integer",
            90,
            "Days for which the text of what the model was sent is stored; 0 stores it as long as its chat.",
            high=36_500,
            project="never",
        ),
        SettingKey(
            "session.max_steps",
            "integer",
            50,
            "Maximum number of requests to the model in one turn.",
            low=1,
            high=10_000,
        ),
        SettingKey(
            "session.max_seconds",
            "seconds",
            0.0,
            "Maximum duration of one turn; 0 sets no limit.",
            high=7 * _DAY_S,
        ),
        SettingKey(
            "session.max_tokens",
            "integer",
            0,
            "Maximum number of input and output tokens in one turn; 0 sets no limit.",
            high=1_000_000_000,
        ),
        SettingKey(
            "session.snapshot_interval",
            "integer",
            10,
            "Number of turns between stored snapshots of the session; 0: only before a compaction and at its end.",
            high=10_000,
        ),
        SettingKey(
            "session.max_snapshots",
            "integer",
            10,
            "Maximum number of snapshots stored for a chat, the newest; 0 stores none.",
            high=1000,
        ),
        SettingKey(
            "permissions.allow",
            "texts",
            (),
            "Rules for what runs without asking, unless another rule asks or denies.",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        SettingKey(
            "permissions.ask",
            "texts",
            (),
            "Rules for what asks even if the mode would not.",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        SettingKey(
            "permissions.deny",
            "texts",
            (),
            "Rules for what never runs, whatever else allows it.",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        SettingKey(
            "permissions.expiry",
            "seconds",
            0.0,
            "How long a permission request waits for an answer before it is denied; 0 waits forever.",
            high=_DAY_S,
        ),
        SettingKey(
            "tools.allow",
            "texts",
            (),
            "The tools that are available; empty means all.",
            words=_TOOLS,
        ),
        SettingKey("tools.deny", "texts", (), "Tools that are not available.", words=_TOOLS, adds=True),
        SettingKey(
            "tools.environment",
            "texts",
            (),
            "Environment variables that commands get in addition to the usual ones, whatever their value.",
            words='a list of names of variables, such as ["DATABASE_URL"], none of which begins with SIDECAR_',
            each=is_variable,
        ),
        SettingKey(
            "tools.readable",
            "paths",
            (),
            "Files and folders of the home that commands in the sandbox can read, in addition to toolchains.",
        ),
        SettingKey(
            "tools.max_processes",
            "integer",
            2048,
            "Maximum number of processes and threads of one command in the sandbox; 0 sets no limit.",
            high=1_000_000,
        ),
        SettingKey(
            "tools.max_memory_bytes",
            "integer",
            0,
            "Maximum memory of one command in the sandbox, in bytes; 0 is half of the machine's.",
            high=1024 * 1024 * _MIB,
        ),
        SettingKey(
            "tools.max_tmp_bytes",
            "integer",
            1024 * _MIB,
            "Maximum bytes in each of /tmp, /var/tmp, /dev/shm and the home in the sandbox; they are in memory.",
            low=_MIB,
            high=1024 * 1024 * _MIB,
        ),
        SettingKey(
            "open_files.max_recent",
            "integer",
            25,
            "Maximum number of open files without a pin; the least recently used is closed first.",
            low=1,
            high=1000,
        ),
        SettingKey("open_files.max_pinned", "integer", 10, "Maximum number of pinned files.", high=100),
        SettingKey(
            "open_files.max_file_bytes",
            "integer",
            _MIB,
            "Maximum size of an open file in bytes; a larger file is reported as too large.",
            low=_KIB,
            high=64 * _MIB,
        ),
        SettingKey(
            "patches.max_entries",
            "integer",
            20,
            "Maximum number of changes in the list of a chat's patches, the newest.",
            low=1,
            high=1000,
        ),
        SettingKey(
            "patches.max_bytes",
            "integer",
            200 * _KIB,
            "Maximum number of bytes shown of a diff; the change itself is stored completely.",
            low=_KIB,
            high=16 * _MIB,
        ),
        *CONTEXT,
        *COMPACTION,
        *RULES,
        *HOOKS,
        *ROUTING,
        *INDEX,
        *FETCH,
        *ADAPTERS,
        SettingKey(
            "project.files",
            "flag",
            False,
            "Write `.context/events.md` and `.context/stats.json` into the projects of chats after each turn.",
        ),
        SettingKey(
            "log.level",
            "text",
            "warn",
            "How detailed the log is.",
            choices=LOG_LEVELS,
            project="never",
        ),
        SettingKey("log.file", "path", None, "A file for the log, in addition to stderr.", project="never"),
        SettingKey(
            "store.data_dir",
            "path",
            None,
            'The folder of the database; ":memory:" stores nothing on disk.',
            project="never",
            environment="SIDECAR_DATA_DIR",
            shown="the user's data folder",
        ),
        SettingKey(
            "store.busy_timeout",
            "seconds",
            10.0,
            "How long a write waits for a write of another process.",
            low=1,
            high=600,
            project="never",
        ),
    )
}
