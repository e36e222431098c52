"""The table of settings: a key exists because it stands here. Loading, checking, writing and the page
docs/configuration.md follow from it. Knows nothing of files, layers or the environment's values.

This floor is imported before anything heavy: it goes without `typing`, `dataclasses` and `re` (5 ms each).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any, Literal

    Kind = Literal["text", "path", "integer", "seconds"]
    Reach = Literal["any", "trusted", "never"]
    Value = str | int | float | dict[str, Any] | None

MEMORY = ":memory:"
"""The data folder that is none: everything is forgotten at exit."""

TABLES = ("session", "log", "store")


class Key:
    """One setting.

    `project` says whether a project's file may set it: always ("any"), once the user trusts the project
    ("trusted"), or not at all ("never": what holds for the whole process, which serves many projects).
    `files` is False for what only the environment and the command line may set.
    """

    __slots__ = (
        "choices",
        "default",
        "doc",
        "environment",
        "files",
        "high",
        "kind",
        "low",
        "name",
        "project",
        "shown",
    )

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Value,
        doc: str,
        *,
        choices: tuple[str, ...] = (),
        low: int = 0,
        high: int = 0,
        project: Reach = "any",
        environment: str | None = None,
        files: bool = True,
        shown: str | None = None,
    ) -> None:
        self.name = name
        self.kind: Kind = kind
        self.default = default
        self.doc = doc
        self.choices = choices
        self.low = low
        self.high = high
        self.project: Reach = project
        self.environment = environment
        self.files = files
        self.shown = shown

    @property
    def expected(self) -> str:
        """What the value must be, in words."""
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        if self.kind == "integer":
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "seconds":
            return f"a number of seconds from {self.low} to {self.high}"
        return "a path" if self.kind == "path" else "text that is not empty"

    def narrow(self, value: object) -> Value:
        """The value as the program uses it, or None when it is not what is expected."""
        if self.kind == "integer":
            return value if type(value) is int and self.low <= value <= self.high else None
        if self.kind == "seconds":
            number = value if type(value) is int or type(value) is float else -1
            return float(number) if self.low <= number <= self.high else None
        if not isinstance(value, str) or not _is_text(value):
            return None
        return value if not self.choices or value in self.choices else None


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


def meant(name: str, candidates: Collection[str]) -> str | None:
    """What `name` was probably meant to be, as a question for a hint."""
    from difflib import get_close_matches

    # Whoever wrote the file also chose how long the name is, and difflib takes quadratic time.
    table, _, last = name.rpartition(".")
    nearby_wins = sorted(candidates, key=lambda candidate: candidate.rpartition(".")[0] == table)
    by_last = {candidate.rpartition(".")[2]: candidate for candidate in nearby_wins}
    close = [f"`{by_last[found]}`" for found in get_close_matches(last[:64], by_last, 2)]
    return f"Did you mean {' or '.join(close)}?" if close else None


def _is_text(value: str) -> bool:
    """Whether it can be a name, a path and a JSON string: not blank, no NUL, no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return value.strip() != "" and "\0" not in value
