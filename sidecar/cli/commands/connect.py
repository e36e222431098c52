"""`sidecar connect`: adds the MCP server to the settings of a coding agent, or removes it. Lists them without a name.

Each changed file is backed up beside it. What was written is remembered, so that `--remove` restores a file that
nobody changed since byte by byte.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import get_args

from sidecar.adapters import connections
from sidecar.adapters.base import Adapter, ServerFile
from sidecar.adapters.connections import FileEdit
from sidecar.adapters.registry import ADAPTERS
from sidecar.cli.errors import CommandFailed
from sidecar.model import FileScope
from sidecar.system.files import write_whole
from sidecar.system.safe_open import FileRefused, read_regular

from .connection_record import ConnectionRecord

MAX_BYTES = 4 * 1024 * 1024
"""Settings files of agents hold kilobytes; `.claude.json` can grow to megabytes."""

BACKUP = ".before-sidecar"

Plan = Callable[[str | None], FileEdit]


def connect(options: Namespace) -> int:
    if options.platform is None:
        return _list()
    adapter = ADAPTERS[options.platform]
    scope: FileScope = "project" if options.project else "user"
    edits, said = _plan(
        adapter,
        scope,
        remove=options.remove,
        instructions=not options.no_instructions,
        hooks=not options.no_hooks,
    )
    changed = [edit for edit in edits if edit.changes]
    for edit in changed:
        _show(edit)
    if not changed:
        print(f"{adapter.title}: nothing to change.")
        for edit in () if options.dry_run else edits:
            _write(edit, adapter.name, remove=options.remove)
    elif options.dry_run:
        print("Nothing was written (--dry-run).")
    else:
        for edit in edits:
            _write(edit, adapter.name, remove=options.remove)
        print(
            f"{adapter.title} is {'disconnected' if options.remove else 'connected'}. Start it again to see it."
        )
    if not options.remove:
        checked = () if adapter.is_run else (f"This follows the {adapter.checked}; we have not run it.",)
        for note in (*said, *adapter.notes, *checked):
            print(f"Note: {note}")
    return 0


def _plan(
    adapter: Adapter, scope: FileScope, *, remove: bool, instructions: bool, hooks: bool
) -> tuple[list[FileEdit], list[str]]:
    """The edits of all files of the agent, one per file, and what to say about what is left out."""
    project, home, said = os.getcwd(), str(Path.home()), list[str]()
    servers = adapter.servers
    path = _existing(connections.file_path(servers, scope, home, project, os.environ))
    if servers is None or path is None:
        raise CommandFailed(f"{adapter.title} has no {scope} file for MCP servers.")
    plans = _Plans(adapter.name, remove=remove)
    try:
        plans.add(path, lambda text: _plan_server(servers, path, text, remove=remove), common=True)
        hook_path = connections.file_path(adapter.hooks, scope, home, project, os.environ)
        elsewhere = None if remove or not hooks else _hooks_elsewhere(adapter, scope, home, project)
        if elsewhere:
            said.append(f"The hooks in {elsewhere} work here too, so they are not registered again.")
        if hook_path and (remove or (hooks and not elsewhere)):
            program = _command()[:-1]
            plans.add(
                hook_path,
                lambda text: connections.plan_hooks(adapter, program, hook_path, text, remove=remove),
            )
        file = connections.instructions_path(adapter, scope, home, project)
        # Hooks give a session its text; where they cannot, a block of instructions does.
        has_text = adapter.hooks is not None and adapter.hooks.format.context_events
        if file and (remove or (instructions and not ((hook_path or elsewhere) and hooks and has_text))):
            plans.add(
                file, lambda text: connections.plan_instructions(file, text, remove=remove), common=True
            )
        return plans.edits(), said
    except connections.InvalidFile as error:
        raise CommandFailed(
            f"{error}\n  Nothing was changed. Correct the file, then try again.", 1
        ) from error


class _Plans:
    """What changes in each file; two plans may concern one."""

    def __init__(self, platform: str, *, remove: bool) -> None:
        self._platform = platform
        self._remove = remove
        self._record = ConnectionRecord()
        self._plans: dict[str, list[Plan]] = {}

    def add(self, path: str, plan: Plan, *, common: bool = False) -> None:
        """`common`: what the plan is about belongs to all agents that read the file; the last one removes it."""
        if not (common and self._remove and self._record.users(path) - {self._platform}):
            self._plans.setdefault(path, []).append(plan)

    def edits(self) -> list[FileEdit]:
        return [self._edit(path, plans) for path, plans in self._plans.items()]

    def _edit(self, path: str, plans: list[Plan]) -> FileEdit:
        text = _read(path)
        if self._remove and self._record.users(path) <= {self._platform}:
            restored = self._restored(path, text)
            if restored is not None and all(plan(restored.after).after == restored.after for plan in plans):
                return restored
        after = text
        for plan in plans:
            after = plan(after).after
        return FileEdit(path, text, after)

    def _restored(self, path: str, text: str | None) -> FileEdit | None:
        """The file as it was before it was connected, if nobody has changed it since."""
        if text is None or not self._record.is_ours(path, text):
            return None
        if self._record.was_created(path):
            return FileEdit(path, text, None)
        before = _read(path + BACKUP)
        return FileEdit(path, text, before) if before is not None else None


def _plan_server(servers: ServerFile, path: str, text: str | None, *, remove: bool) -> FileEdit:
    if remove:
        return connections.plan_server_removal(servers, path, text)
    return connections.plan_server(servers, _command(), path, text)


def _existing(path: str | None) -> str | None:
    """The path, or that of the same file with comments: some agents read NAME.jsonc as well as NAME.json."""
    if path and path.endswith(".json") and not os.path.lexists(path) and os.path.lexists(f"{path}c"):
        return f"{path}c"
    return path


def _hooks_elsewhere(adapter: Adapter, scope: FileScope, home: str, project: str) -> str | None:
    """Another file with hooks of ours that the agent runs too: its own of the other scope, or another agent's."""
    hooks = adapter.hooks
    if hooks is None:
        return None
    other: FileScope = "user" if scope == "project" else "project"
    own = connections.file_path(hooks, other, home, project, os.environ)
    named = [(own, {adapter.name})] if own and scope == "project" else []
    named += [
        (os.path.join(project if where == "project" else home, file), set(ADAPTERS) - {adapter.name})
        for where, file in hooks.shared.items()
    ]
    for path, platforms in named:
        text = _read(path)
        if text and platforms & connections.hook_platforms(hooks, text, path).keys():
            return path
    return None


def _command() -> list[str]:
    """The command of this installation, by its absolute path: agents start servers without a shell's PATH."""
    found = Path(sys.argv[0])
    program = found if found.name.startswith("sidecar") and found.exists() else None
    named = str(program.absolute()) if program else shutil.which("sidecar")
    return [named, "mcp"] if named else [sys.executable, "-m", "sidecar", "mcp"]


def _read(path: str) -> str | None:
    try:
        return read_regular(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{path}: not UTF-8 text. Nothing was changed.", 1) from error
    except FileRefused as error:
        if not os.path.lexists(path):
            return None
        raise CommandFailed(f"{path}: {error}. Nothing was changed.", 1) from error


def _show(edit: FileEdit) -> None:
    before, after = (edit.before or "").splitlines(), (edit.after or "").splitlines()
    print(edit.path if edit.after is not None else f"{edit.path} (removed)")
    for line in list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]:
        print(f"  {line}")


def _write(edit: FileEdit, platform: str, *, remove: bool) -> None:
    record = ConnectionRecord()
    if edit.changes:
        # A link of the user (dotfiles) is followed: the file behind it is the one that the agent reads.
        target = os.path.realpath(edit.path)
        if edit.after is None:
            os.unlink(target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if edit.before is not None and not remove and not record.is_ours(edit.path, edit.before):
                write_whole(edit.path + BACKUP, edit.before.encode(), overwrite=True)
            write_whole(target, edit.after.encode(), overwrite=True)
    if remove and record.users(edit.path) <= {platform}:
        with suppress(FileNotFoundError):
            os.unlink(edit.path + BACKUP)
    record.note(edit, platform, remove=remove)


def _list() -> int:
    """Print which agents are installed and connected."""
    home, project = str(Path.home()), os.getcwd()
    width = max(len(name) for name in ADAPTERS)
    for name, adapter in ADAPTERS.items():
        installed = "installed" if _is_installed(adapter, home) else "-"
        connected = []
        for scope in get_args(FileScope):
            path = _existing(connections.file_path(adapter.servers, scope, home, project, os.environ))
            if adapter.servers and path and _has_entry(adapter.servers, path):
                connected.append(scope)
        print(f"{name:{width}}  {installed:9}  {'connected: ' + ', '.join(connected) if connected else '-'}")
    print("\n`sidecar connect NAME` connects one for you, `--project` for this folder only.")
    print("`sidecar doctor` checks each connection.")
    return 0


def _is_installed(adapter: Adapter, home: str) -> bool:
    """Whether its program is on PATH; of one without a program, whether it has a folder in the home."""
    if adapter.program:
        return shutil.which(adapter.program) is not None
    place = adapter.servers.user if adapter.servers else None
    return place is not None and os.path.isdir(os.path.join(home, place.partition("/")[0]))


def _has_entry(servers: ServerFile, path: str) -> bool:
    try:
        text = _read(path)
        return text is not None and connections.server_entry(servers, text, path) is not None
    except (connections.InvalidFile, CommandFailed) as error:
        print(f"  {error}", file=sys.stderr)
        return False
