"""A hook as a value: an entry of a file, or the error why it cannot run."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, get_args

import msgspec

from ...model import FileScope

HookEventName = Literal[
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact", "SessionStart", "SessionEnd", "Stop"
]
EVENTS: tuple[str, ...] = get_args(HookEventName)

TOOL_EVENTS = ("PreToolUse", "PostToolUse")

DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 600.0
"""As long as a command of the model may take."""

MAX_NAME_CHARACTERS = 80
"""Characters of a command in a line for users."""


ProblemCode = Literal["malformed", "unreadable", "unknown_event", "unsupported_event", "matcher", "too_many"]
"""What is wrong with a hook, by name."""


class Hook(msgspec.Struct, frozen=True):
    """One entry of a file. `event` is empty when the whole file is broken: then its events are unknown.

    `claude` says that the entry was written for Claude Code, so its payload uses that program's names.
    """

    file: str
    scope: FileScope
    event: str
    matcher: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    seconds: float = DEFAULT_TIMEOUT_S
    claude: bool = False
    problem: str | None = None
    problem_code: ProblemCode | None = None
    trusted: bool = True
    """Whether its project is trusted; an untrusted hook does not run."""

    @property
    def id(self) -> str:
        """The identity of the entry, equal in all processes until the entry changes."""
        parts = (self.file, self.event, self.matcher, *self.whole)
        return f"hk-{sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:12]}"

    @property
    def whole(self) -> tuple[str, ...]:
        """The full command that is run."""
        return (self.command, *(self.args or ()))

    @property
    def name(self) -> str:
        """The command in one line, for users."""
        line = " ".join(" ".join(self.whole).split())
        return line if len(line) <= MAX_NAME_CHARACTERS else f"{line[: MAX_NAME_CHARACTERS - 1]}…"

    @property
    def root(self) -> str:
        """The folder of the plugin that the file belongs to: its own, or the parent of a folder `hooks`."""
        folder, _, _ = self.file.rpartition("/")
        above, _, last = folder.rpartition("/")
        return above if last == "hooks" and above else folder or "/"
