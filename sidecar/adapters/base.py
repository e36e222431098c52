"""What Sidecar must know of a coding agent to serve it. Plain values: an adapter does nothing by itself.

A hook imports one adapter while an agent waits for it: no `typing`, `dataclasses` or msgspec (5 to 10 ms each).
"""

from __future__ import annotations

from .hook_formats import HookFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from ..model import FileScope

    Entry = Callable[[list[str]], dict[str, Any]]
    Problem = tuple[str, str]
    Syntax = Literal["json", "toml", "script", "list"]


def plain_entry(command: list[str]) -> dict[str, Any]:
    """A server as most agents write it."""
    return {"command": command[0], "args": command[1:]}


def stdio_entry(command: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **plain_entry(command)}


def list_entry(command: list[str]) -> dict[str, Any]:
    """A server as OpenCode and its relatives write it."""
    return {"type": "local", "command": command, "enabled": True}


class ServerFile:
    """Where an agent reads its MCP servers from, and how it writes one.

    `user` is relative to the home, `project` to the project; None where there is no such file. `moved` names an
    environment variable with a folder, and the path in it that replaces `user` when the variable is set.
    """

    __slots__ = ("container", "entry", "moved", "project", "syntax", "user")

    def __init__(
        self,
        *,
        user: str | None,
        project: str | None,
        container: tuple[str, ...] = ("mcpServers",),
        entry: Entry = plain_entry,
        syntax: Syntax = "json",
        moved: tuple[str, str] | None = None,
    ) -> None:
        self.user = user
        self.project = project
        self.container = container
        self.entry = entry
        self.syntax: Syntax = syntax
        self.moved = moved


class HookFile:
    """Where an agent reads its hooks from, and their format.

    `syntax` is `json` for lists by event under `hooks`; `toml` for the tables `[[hooks]]`; `list` for one list under
    `hooks`; `script` for a program of the agent that runs our hook: `script` makes its text from a command. `own`: the
    file holds nothing else. `shared` has files of another agent, by scope, whose hooks this one runs too.
    """

    __slots__ = ("format", "moved", "own", "project", "script", "shared", "syntax", "user")

    def __init__(
        self,
        *,
        user: str | None,
        project: str | None,
        format: HookFormat,
        syntax: Syntax = "json",
        own: bool = False,
        moved: tuple[str, str] | None = None,
        shared: Mapping[FileScope, str] | None = None,
        script: Callable[[list[str]], str] | None = None,
    ) -> None:
        self.user = user
        self.project = project
        self.format = format
        self.syntax: Syntax = syntax
        self.own = own
        self.moved = moved
        self.shared: Mapping[FileScope, str] = shared or {}
        self.script = script


class Connected:
    """A connection of an agent, for what is checked about it: in which scope, by which files, and what is around.

    `hooks` is None where our hooks are not registered. `read` returns the settings in a file, {} when there are none;
    `exists` says whether there is such a file or folder.
    """

    __slots__ = ("exists", "home", "hooks", "project", "read", "scope", "servers")

    def __init__(
        self,
        *,
        scope: FileScope,
        servers: str,
        hooks: str | None,
        home: str,
        project: str,
        read: Callable[[str], Mapping[str, Any]],
        exists: Callable[[str], bool],
    ) -> None:
        self.scope = scope
        self.servers = servers
        self.hooks = hooks
        self.home = home
        self.project = project
        self.read = read
        self.exists = exists

    def value(self, path: str, *keys: str) -> Any:
        """What the file has under these keys; None when it has nothing there."""
        found: Any = self.read(path)
        for key in keys:
            found = found.get(key) if hasattr(found, "get") else None
        return found

    def lists(self, path: str, *keys: str) -> bool | None:
        """Whether the list under these keys has our server; None when there is no such list."""
        found = self.value(path, *keys)
        return "sidecar" in found if isinstance(found, list) else None

    def unlisted(self, table: str, excluded: str, allowed: str) -> list[Problem]:
        """Whether lists of servers beside the entry keep ours out."""
        found: list[Problem] = []
        if self.lists(self.servers, table, excluded):
            action = f"Remove it from `{table}.{excluded}` in {self.servers}"
            found.append(("The server is switched off", action))
        if self.lists(self.servers, table, allowed) is False:
            action = f"Add it to `{table}.{allowed}` in {self.servers}"
            found.append(("The server is not among those allowed", action))
        return found


class Adapter:
    """One coding agent.

    `clients` are the names by which it introduces itself over MCP; one that ends with `*` is a prefix. `marks` are
    environment variables that only this agent sets; `hook_marks` are those, or members of a payload, that only its
    hooks have: some agents run hooks from files of others. `session_variable` holds the id of its session in the
    environment of its MCP servers, and `session_meta` is the path of the id in the `_meta` of its requests.
    `project_variable` holds the folder of its project. `program` is found on PATH. `instructions` is the file of a
    project that it reads as instructions, and `user_instructions` that of the home. `checked` says how `connect` was
    checked: with this version of the agent, or by its documentation of a date. `cannot` says what it cannot do, and
    `notes` what the user must know besides, in sentences. `problems` finds what keeps a connection from working, each
    with what to do about it.
    """

    __slots__ = (
        "cannot",
        "checked",
        "clients",
        "hook_marks",
        "hooks",
        "instructions",
        "marks",
        "name",
        "notes",
        "problems",
        "program",
        "project_variable",
        "servers",
        "session_meta",
        "session_variable",
        "title",
        "user_instructions",
    )

    def __init__(
        self,
        *,
        name: str,
        title: str,
        clients: tuple[str, ...],
        checked: str,
        marks: tuple[str, ...] = (),
        hook_marks: tuple[str, ...] = (),
        session_variable: str | None = None,
        session_meta: tuple[str, ...] = (),
        project_variable: str | None = None,
        servers: ServerFile | None = None,
        hooks: HookFile | None = None,
        program: str | None = None,
        instructions: str | None = None,
        user_instructions: str | None = None,
        cannot: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        problems: Callable[[Connected], list[Problem]] = lambda connected: [],
    ) -> None:
        self.name = name
        self.title = title
        self.clients = clients
        self.checked = checked
        self.marks = marks
        self.hook_marks = hook_marks
        self.session_variable = session_variable
        self.session_meta = session_meta
        self.project_variable = project_variable
        self.servers = servers
        self.hooks = hooks
        self.program = program
        self.instructions = instructions
        self.user_instructions = user_instructions
        self.cannot = cannot
        self.notes = notes
        self.problems = problems

    @property
    def is_run(self) -> bool:
        """Whether `connect` was tried with the agent itself."""
        return not self.checked.startswith("documentation")
