"""`sidecar connect`: adds the MCP server to the settings of a coding agent, or removes it. Lists them without a name.

Each changed file is backed up beside it. What was written is remembered, so that `--remove` restores a file that
nobody changed since byte by byte.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sidecar.adapters import connections
from sidecar.adapters.base import Adapter
from sidecar.adapters.connections import FileEdit
from sidecar.adapters.registry import ADAPTERS
from sidecar.cli.errors import CommandFailed
from sidecar.model import FileScope
from sidecar.settings.files import default_data_dir
from sidecar.system.files import write_whole
from sidecar.system.safe_open import FileRefused, read_regular

MAX_BYTES = 4 * 1024 * 1024
"""Settings files of agents hold kilobytes; `.claude.json` can grow to megabytes."""

BACKUP = ".before-sidecar"


def connect(options: Namespace) -> int:
    if options.platform is None:
        return _list()
    adapter = ADAPTERS[options.platform]
    scope: FileScope = "project" if options.project else "user"
    edits = _plan(
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
    elif options.dry_run:
        print("Nothing was written (--dry-run).")
    else:
        for edit in changed:
            _write(edit, remove=options.remove)
        print(
            f"{adapter.title} is {'disconnected' if options.remove else 'connected'}. Start it again to see it."
        )
    if not options.remove:
        for note in adapter.notes:
            print(f"Note: {note}")
        if not adapter.verified:
            print("Note: this follows the agent's documentation of November 2026; we have not run it.")
    return 0


def _plan(
    adapter: Adapter, scope: FileScope, *, remove: bool, instructions: bool, hooks: bool
) -> list[FileEdit]:
    """The edits of all files of the agent, one per file."""
    project, home = os.getcwd(), str(Path.home())
    path = connections.server_path(adapter, scope, home, project, os.environ)
    if path is None:
        where = (
            "no settings for MCP servers" if adapter.servers is None else f"no {scope} file for MCP servers"
        )
        raise CommandFailed(f"{adapter.title} has {where}.\n  {' '.join(adapter.notes)}".rstrip())
    plans = _Plans(remove=remove)
    try:
        plans.add(path, lambda text: _plan_server(adapter, path, text, remove=remove))
        hook_path = connections.hook_path(adapter, scope, home, project, os.environ)
        if hook_path and (remove or (hooks and not _has_hooks_elsewhere(adapter, scope, project))):
            program = _command()[:-1]
            plans.add(
                hook_path,
                lambda text: connections.plan_hooks(adapter, program, hook_path, text, remove=remove),
            )
        if scope == "project" and instructions and adapter.instructions:
            file = os.path.join(project, adapter.instructions)
            plans.add(file, lambda text: connections.plan_instructions(file, text, remove=remove))
    except connections.InvalidFile as error:
        raise CommandFailed(
            f"{error}\n  Nothing was changed. Correct the file, then try again.", 1
        ) from error
    return plans.edits


class _Plans:
    """The edits so far. Two plans may concern one file; one that nobody changed since is restored as it was."""

    def __init__(self, *, remove: bool) -> None:
        self._remove = remove
        self._edits: dict[str, FileEdit] = {}
        self._restored: set[str] = set()

    @property
    def edits(self) -> list[FileEdit]:
        return list(self._edits.values())

    def add(self, path: str, plan: Callable[[str | None], FileEdit]) -> None:
        if path in self._restored:
            return
        known = self._edits.get(path)
        restored = _restored(path) if self._remove and known is None else None
        if restored is not None:
            self._restored.add(path)
            self._edits[path] = restored
            return
        before = known.before if known else _read(path)
        after = plan(known.after if known else before).after
        self._edits[path] = FileEdit(path, before, after)


def _plan_server(adapter: Adapter, path: str, text: str | None, *, remove: bool) -> FileEdit:
    if remove:
        return connections.plan_disconnect(adapter, path, lambda _: text)
    return connections.plan_connect(adapter, _command(), path, lambda _: text)


def _has_hooks_elsewhere(adapter: Adapter, scope: FileScope, project: str) -> bool:
    """Whether the agent reads our hooks from another agent's file: Copilot also runs those of Claude Code."""
    if adapter.name != "copilot" or scope != "project":
        return False
    text = _read(os.path.join(project, ".claude/settings.json"))
    return text is not None and " hook --platform claude-code" in text


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


def _write(edit: FileEdit, *, remove: bool) -> None:
    record = _Record()
    # A link of the user (dotfiles) is followed: the file behind it is the one that the agent reads.
    target = os.path.realpath(edit.path)
    if edit.after is None:
        os.unlink(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if edit.before is not None and not remove and not record.is_ours(edit.path, edit.before):
            write_whole(edit.path + BACKUP, edit.before.encode(), overwrite=True)
        write_whole(target, edit.after.encode(), overwrite=True)
    if remove:
        with suppress(FileNotFoundError):
            os.unlink(edit.path + BACKUP)
    record.note(edit, remove=remove)


def _restored(path: str) -> FileEdit | None:
    """The file as it was before it was connected, if nobody has changed it since."""
    record, text = _Record(), _read(path)
    if text is None or not record.is_ours(path, text):
        return None
    if record.created(path):
        return FileEdit(path, text, None)
    before = _read(path + BACKUP)
    return FileEdit(path, text, before) if before is not None else None


class _Record:
    """Which files were written: the hash of what was written, and whether the file was created."""

    def __init__(self) -> None:
        self._path = os.path.join(
            os.environ.get("SIDECAR_DATA_DIR") or default_data_dir(), "connections.json"
        )
        try:
            self._entries: dict[str, dict[str, str | bool]] = json.loads(Path(self._path).read_text())
        except (OSError, ValueError):
            self._entries = {}

    def is_ours(self, path: str, text: str) -> bool:
        """Whether the file still has the text that was written."""
        return self._entries.get(path, {}).get("written") == _hash(text)

    def created(self, path: str) -> bool:
        return self._entries.get(path, {}).get("created") is True

    def note(self, edit: FileEdit, *, remove: bool) -> None:
        if remove:
            self._entries.pop(edit.path, None)
        else:
            again = edit.before is not None and self.is_ours(edit.path, edit.before)
            created = self.created(edit.path) if again else edit.before is None
            self._entries[edit.path] = {"written": _hash(edit.after or ""), "created": created}
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        temporary = f"{self._path}.tmp"
        Path(temporary).write_text(json.dumps(self._entries, indent=1))
        os.replace(temporary, self._path)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _list() -> int:
    """Print which agents are installed and connected."""
    home, project = str(Path.home()), os.getcwd()
    width = max(len(name) for name in ADAPTERS)
    for name, adapter in ADAPTERS.items():
        installed = "installed" if adapter.program and shutil.which(adapter.program) else "-"
        connected = []
        for scope in ("user", "project"):
            path = connections.server_path(adapter, scope, home, project, os.environ)
            if path is not None and _has_entry(adapter, path):
                connected.append(scope)
        print(f"{name:{width}}  {installed:9}  {'connected: ' + ', '.join(connected) if connected else '-'}")
    print("\n`sidecar connect NAME` connects one for you, `--project` for this folder only.")
    return 0


def _has_entry(adapter: Adapter, path: str) -> bool:
    try:
        text = _read(path)
        return text is not None and connections.is_connected(adapter, text, path)
    except (connections.InvalidFile, CommandFailed) as error:
        print(f"  {error}", file=sys.stderr)
        return False
