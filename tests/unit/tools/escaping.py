"""Every tool that takes a path, called with one that leads out, and an account of what came of it.

The edits are written by what writes them in the program. A context that claims to have seen everything leaves the
confinement as the only thing in the way.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sidecar.model.failures import Refused
from sidecar.tools.base import Edit, PlannedCall, Tool, ToolError, ToolInput
from sidecar.tools.files.edit_file import EditFile
from sidecar.tools.files.git_diff import GitDiffTool
from sidecar.tools.files.glob import GlobTool
from sidecar.tools.files.grep import Grep
from sidecar.tools.files.insert_line import InsertLine
from sidecar.tools.files.list_dir import ListDir
from sidecar.tools.files.patch_file import PatchFile
from sidecar.tools.files.read_file import ReadFile
from sidecar.tools.files.write_file import WriteFile
from sidecar.tools.shell.run_command import RunCommand
from sidecar.tools.shell.runner import Runner
from sidecar.workspace.paths import Workspace
from sidecar.workspace.writing import digest, replace
from tests.unit.tools.context import FolderContext
from tests.unit.workspace.corpus import Verdict
from tests.unit.workspace.trees import SECRET, Tree, hostile, litter, outside

Input = dict[str, Any]

MARK = "only_outside"
"""The name of a file in every folder outside, which no path of the corpus says: who tells it has looked there."""

LOOK = "pwd -P; ls -a; cat secret.txt"
FORBIDDEN = ("outside", "links", "name", "own_file")
"""Why the corpus has a path refused, where no tool may do anything at all with it."""


class Way(msgspec.Struct, frozen=True):
    """A way to call a tool with a path. `strict` when it must refuse what is forbidden, not only tell nothing of it."""

    tool: Callable[[], Tool]
    input: Callable[[str], Input]
    strict: bool = True


class Account(msgspec.Struct):
    """What went wrong, by path; nothing when all of it is empty."""

    told: set[str] = set()
    done: set[str] = set()
    crashed: dict[str, str] = {}
    changed: bool = False
    """Something outside, or a link in the project, is not what it was."""
    opened: bool = False
    """The database was opened: to close it has dropped the locks on it."""


class KnowingHands(FolderContext):
    """A model that has seen the secret at every path, so that none is safe because it was not read."""

    def seen(self, path: str) -> str | None:
        return digest(SECRET)


def header(kind: str, shape: str = "{old}\n{new}") -> Callable[[str], Input]:
    """A diff whose header names the path: it makes, changes or deletes a file with the secret's text."""

    def input(path: str) -> Input:
        old = "--- /dev/null" if kind == "create" else f"--- a/{path}"
        new = "+++ /dev/null" if kind == "delete" else f"+++ b/{path}"
        octal = _octal(path) if "{octal}" in shape else ""  # some paths are long
        names = shape.format(old=old, new=new, path=path, octal=octal)
        return {"patch": f"{names}\n{_HUNKS[kind]}"}

    return input


def _octal(path: str) -> str:
    """As git writes a name that has characters which it does not trust."""
    return "".join(f"\\{byte:03o}" for byte in path.encode(errors="surrogatepass"))


def _by_path(kind: str) -> Callable[[str], Input]:
    return lambda path: {**header(kind)("x"), "path": path}


_LAST = "\\ No newline at end of file\n"
_HUNKS = {
    "create": "@@ -0,0 +1 @@\n+escaped\n",
    "modify": f"@@ -1 +1 @@\n-{SECRET.decode()}\n{_LAST}+escaped\n",
    "delete": f"@@ -1 +0,0 @@\n-{SECRET.decode()}\n{_LAST}",
}

READING = {
    "read_file": Way(ReadFile, lambda path: {"path": path}),
    "list_dir": Way(ListDir, lambda path: {"path": path}),
    "glob": Way(GlobTool, lambda path: {"pattern": "**", "path": path}),
    "grep": Way(Grep, lambda path: {"pattern": "secret|root", "path": path}),
    "grep without ripgrep": Way(
        lambda: Grep(lambda: None), lambda path: {"pattern": "secret|root", "path": path}
    ),
    "run_command": Way(
        lambda: RunCommand(Runner("off", os.environ)),
        lambda path: {"command": LOOK, "cwd": path, "timeout_ms": 20_000},
    ),
}

WRITING = {
    "write_file": Way(WriteFile, lambda path: {"path": path, "content": "escaped"}),
    "edit_file": Way(EditFile, lambda path: {"path": path, "old_string": "secret", "new_string": "escaped"}),
    "edit_file of nothing": Way(
        EditFile, lambda path: {"path": path, "old_string": "", "new_string": "escaped"}
    ),
    "insert_line": Way(InsertLine, lambda path: {"path": path, "line": 0, "text": "escaped"}),
    **{f"patch_file to {kind}": Way(PatchFile, _by_path(kind)) for kind in _HUNKS},
}

HEADERS = {
    f"{name} to {kind}": Way(PatchFile, header(kind, shape), strict=False)
    for kind in _HUNKS
    for name, shape in {
        "---": "{old}\n{new}",
        "bare": "--- {path}\n+++ {path}",
        "dated": "{old}\t2026-01-01\n{new}\t2026-01-01",
        "quoted": '--- "a/{path}"\n+++ "b/{path}"',
        "octal": '--- "a/{octal}"\n+++ "b/{octal}"',
        "git": "diff --git a/{path} b/{path}\nindex 1..2 100644\n{old}\n{new}",
        "two names": "diff --git a/inside.txt b/inside.txt\n--- a/inside.txt\n+++ b/{path}",
        "second file": "--- /dev/null\n+++ b/first.txt\n@@ -0,0 +1 @@\n+first\n{old}\n{new}",
    }.items()
}
"""A header ends at a tab or a line end, and loses its `a/`: what it names may be another path, which is no escape."""

GIT = Way(GitDiffTool, lambda path: {"path": path}, strict=False)
"""Git tells of a link by its name and its target; it does not follow it."""


def scene(base: Path) -> Tree:
    """The hostile tree, with a name outside that tells whoever has seen it."""
    tree = hostile(base)
    for folder in (tree.outside, tree.outside / "sub", tree.base / "project_evil"):
        (folder / MARK).write_bytes(SECRET)
    return tree


async def trial(tree: Tree, workspace: Workspace, way: Way, paths: Mapping[str, Verdict]) -> Account:
    """Call the tool with each path; the account says what should not have come of it."""
    account = Account()
    foreign = foreign_texts()
    before, links = outside(tree), _links(tree)
    with open(tree.outside / "chats.db", "rb+") as database:  # noqa: ASYNC230
        fcntl.lockf(database, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path, verdict in paths.items():
            told: list[str] = []
            try:
                await carry_out(way.tool(), way.input(path), KnowingHands(workspace), tree, told)
                if way.strict and verdict[1] in FORBIDDEN:
                    account.done.add(path)
            except (Refused, ToolError) as refused:
                told.append(str(refused))
            except Exception as error:
                account.crashed[path] = repr(error)
            if any(text in piece for piece in told for text in foreign):
                account.told.add(path)
        account.opened = not _locked(tree.outside / "chats.db")
    kept = _links(tree).items() >= links.items() and litter(tree.base) == []
    account.changed = outside(tree) != before or not kept
    return account


async def carry_out(tool: Tool, input: Input, context: FolderContext, tree: Tree, told: list[str]) -> None:
    """A call that is given every leave. All that a model, a user or a journal gets to see goes into `told`."""
    told.append(tool.title(ToolInput(input)))
    ready = await tool.prepare(ToolInput(input), context)
    told += _planned(ready)
    for edit in ready.intent.edits:
        # A mistake must not write to the machine that the test runs on.
        assert not os.path.isabs(edit.path) or edit.path.startswith(str(tree.base)), edit.path
        await context.block(write, context.workspace, edit)
    outcome = await ready.run()
    told += [outcome.text, outcome.whole or "", *outcome.paths, *outcome.matched, *context.shown]


def write(workspace: Workspace, edit: Edit) -> None:
    """As the program writes it."""
    expected = None if edit.before is None else digest(edit.before)
    replace(workspace, edit.path, expected, edit.after, token="0badcafe")


def foreign_texts() -> Iterable[str]:
    """What stands only outside: in the tree, and where the paths of the corpus lead on every machine."""
    texts = [SECRET.decode(), MARK]
    for path, end in (("/etc/passwd", b"\n"), ("/proc/self/environ", b"\0")):
        if os.path.exists(path):
            first = Path(path).read_bytes().partition(end)[0].decode(errors="replace")
            texts += [first] if len(first) > 4 else []
    return texts


def _planned(ready: PlannedCall) -> list[str]:
    intent = ready.intent
    sides = [side for edit in intent.edits for side in (edit.before, edit.after) if side is not None]
    return [intent.subject, intent.folder or "", *(side.decode("latin-1") for side in sides)]


def _links(tree: Tree) -> dict[str, str]:
    found = {}
    for folder, folders, files in os.walk(tree.root):
        for path in (os.path.join(folder, name) for name in (*folders, *files)):
            if os.path.islink(path):
                found[path] = os.readlink(path)
    return found


def _locked(path: Path) -> bool:
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.DEVNULL).returncode != 0
