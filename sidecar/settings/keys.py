"""The table of settings: a key exists because it stands here. Loading, checking, writing and the page
docs/configuration.md follow from it. Knows nothing of files, layers or the environment's values."""

from __future__ import annotations

from .hook_keys import HOOKS, ROUTING
from .index_keys import INDEX
from .key import Key, is_plain
from .web_keys import FETCH
from .window_keys import COMPACTION, CONTEXT, RULES

MEMORY = ":memory:"
"""The data folder that is none: everything is forgotten at exit."""

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
    """Whether it has the shape of a rule, KIND(PATTERN) or "*". What it means is not known on this floor."""
    kind, opening, rest = text.partition("(")
    named = kind != "" and all("a" <= char <= "z" or char == "-" for char in kind)
    shaped = named and opening != "" and rest.endswith(")") and rest[:-1].strip() != ""
    return text == "*" or (shaped and is_plain(text))


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(
            "model",
            "text",
            None,
            "The model that answers, as `provider:model`. Without it: that of a provider with a key in the "
            "environment, else of a running Ollama, else the embedded one.",
            environment="SIDECAR_MODEL",
            shown="chosen automatically",
        ),
        Key("engine", "text", "native", "Who runs a turn.", choices=("native",), project="trusted"),
        Key(
            "mode",
            "text",
            "ask",
            "What runs unasked: edits in the project (accept-edits), all (auto); read-only denies changes.",
            choices=("ask", "accept-edits", "read-only", "auto"),
            project="trusted",
        ),
        Key(
            "sandbox",
            "text",
            "auto",
            "Bubblewrap confines commands: where it works (auto), or else they do not run (require), or never (off).",
            choices=("auto", "require", "off"),
            project="trusted",
        ),
        Key(
            "titles",
            "text",
            "words",
            "A chat's title comes from the first prompt's words, or from the model after the first turn.",
            choices=("words", "model"),
        ),
        Key(
            "chat_id",
            "text",
            None,
            "Stands in for a `chatId` that a request leaves out.",
            environment="SIDECAR_CHAT_ID",
            files=False,
        ),
        Key(
            "session.retention_days",
            "integer",
            0,
            "Chats idle for so many days are purged at start; 0 keeps them for ever.",
            high=36_500,
            project="never",
        ),
        Key(
            "session.max_steps",
            "integer",
            50,
            "Requests to the model in one turn, at most.",
            low=1,
            high=10_000,
        ),
        Key(
            "session.max_seconds",
            "seconds",
            0.0,
            "How long one turn may take; 0 sets no limit.",
            high=7 * _DAY_S,
            project="trusted",
        ),
        Key(
            "session.max_tokens",
            "integer",
            0,
            "Tokens in and out of the model in one turn, at most; 0 sets no limit.",
            high=1_000_000_000,
            project="trusted",
        ),
        Key(
            "session.snapshot_interval",
            "integer",
            10,
            "Turns after which a snapshot of the session is kept; 0: only before a compaction and at its end.",
            high=10_000,
        ),
        Key(
            "session.max_snapshots",
            "integer",
            10,
            "Snapshots that a chat keeps, the newest; 0 keeps none.",
            high=1000,
        ),
        Key(
            "permissions.allow",
            "texts",
            (),
            "What runs without asking, unless another rule asks or denies.",
            project="trusted",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        Key(
            "permissions.ask",
            "texts",
            (),
            "What is asked about even where the mode would not.",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        Key(
            "permissions.deny",
            "texts",
            (),
            "What never runs, whatever else allows it.",
            words=_RULES,
            each=is_rule,
            adds=True,
        ),
        Key(
            "permissions.expiry",
            "seconds",
            0.0,
            "How long a question waits for its answer, and then counts as denied; 0 waits for ever.",
            high=_DAY_S,
        ),
        Key(
            "tools.allow",
            "texts",
            (),
            "The only tools that there are, when it names any.",
            project="trusted",
            words=_TOOLS,
        ),
        Key("tools.deny", "texts", (), "Tools that there are not.", words=_TOOLS, adds=True),
        Key(
            "open_files.max_recent",
            "integer",
            25,
            "Files that a chat has in view without a pin; the one not looked at for longest makes room.",
            low=1,
            high=1000,
        ),
        Key("open_files.max_pinned", "integer", 10, "Files that a chat has pinned, at most.", high=100),
        Key(
            "open_files.max_file_bytes",
            "integer",
            _MIB,
            "A larger file in view is told as too large.",
            low=_KIB,
            high=64 * _MIB,
        ),
        Key(
            "patches.max_entries",
            "integer",
            20,
            "Recorded changes that the list of a chat's patches has, the newest.",
            low=1,
            high=1000,
        ),
        Key(
            "patches.max_bytes",
            "integer",
            200 * _KIB,
            "Of a longer diff, so much is shown; the change itself is kept whole.",
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
        Key(
            "project.files",
            "flag",
            False,
            "Keeps `.context/events.md` and `.context/stats.json` in the projects of chats, anew after each turn.",
            project="trusted",
        ),
        Key(
            "log.level",
            "text",
            "warn",
            "How much the log tells.",
            choices=("error", "warn", "info", "debug", "trace"),
            project="never",
        ),
        Key("log.file", "path", None, "A file that gets the log as well as stderr.", project="never"),
        Key(
            "store.data_dir",
            "path",
            None,
            'The folder of the database; ":memory:" keeps nothing.',
            project="never",
            environment="SIDECAR_DATA_DIR",
            shown="the user's data folder",
        ),
        Key(
            "store.busy_timeout",
            "seconds",
            10.0,
            "How long a write waits for another process's.",
            low=1,
            high=600,
            project="never",
        ),
    )
}
