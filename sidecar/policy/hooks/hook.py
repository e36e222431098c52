"""What a hook is: an entry of a file, and what is wrong with it if it cannot be run."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, get_args

import msgspec

Event = Literal[
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact", "SessionStart", "SessionEnd", "Stop"
]
EVENTS: tuple[str, ...] = get_args(Event)

TOOL_EVENTS = ("PreToolUse", "PostToolUse")

DEFAULT_S = 60.0
MAX_S = 600.0
"""As long as a command of the model's may take."""

NAME = 80
"""Characters of a command in a line that people read."""


class Hook(msgspec.Struct, frozen=True):
    """One entry of a file. `event` is empty when the file as a whole is broken: then nobody knows what it held.

    `claude` says that the entry was written for Claude Code, so that its payload speaks that program's names.
    """

    file: str
    scope: Literal["user", "project"]
    event: str
    matcher: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    seconds: float = DEFAULT_S
    claude: bool = False
    problem: str | None = None
    trusted: bool = True
    """Whether its project is trusted; without that it does not run."""

    @property
    def id(self) -> str:
        """Names the entry, in all processes and for as long as it stands as it does."""
        parts = (self.file, self.event, self.matcher, *self.whole)
        return f"hk-{sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:12]}"

    @property
    def whole(self) -> tuple[str, ...]:
        """What is run."""
        return (self.command, *(self.args or ()))

    @property
    def name(self) -> str:
        """The command in one line, for people."""
        line = " ".join(" ".join(self.whole).split())
        return line if len(line) <= NAME else f"{line[: NAME - 1]}…"

    @property
    def root(self) -> str:
        """The folder of the plugin that the file belongs to: its own, or the one above a folder `hooks`."""
        folder, _, _ = self.file.rpartition("/")
        above, _, last = folder.rpartition("/")
        return above if last == "hooks" and above else folder or "/"
