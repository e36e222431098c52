"""Writes `.context/events.md` and `.context/stats.json` to a project after each turn of its chats, when
`project.files` is set.

They are written like any file of a project: confined to its folder, and atomically. A file of that name that does
not start with our marker is not ours, and is not changed. What could not be written now is written after the next
turn.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Collection

import anyio
import anyio.to_thread
import msgspec

from ...context.resume import entries
from ...context.resume.rendering import LABELS
from ...model.failures import Failure, Refused
from ...model.figures import statistics_report
from ...store.tables.statistics import StatisticsScope
from ...text.plural import counted
from ...workspace import writing
from ...workspace.paths import Workspace
from ..journal import project_identity
from ..sessions.session import Session

logger = logging.getLogger(__name__)

EVENTS_FILE = ".context/events.md"
STATS_FILE = ".context/stats.json"

MAX_BYTES = 64 * 1024
"""Bytes of a file: what a person or a model reads at once. The chats that were idle longest are removed first."""

MAX_SECTION = 8 * 1024
"""Characters of one chat's section."""

MAX_OWN_FILE_BYTES = 4 * MAX_BYTES
"""A larger file was not written by us."""

_EVENTS_MARK = (
    "<!-- Written by sidecar after each turn. It holds what was asked: .context/ belongs into .gitignore. -->"
)
_STATS_MARK = '{\n  "writtenBy": "sidecar",'
_SECTION = re.compile(r"^<!-- chat (sc-[a-z0-9-]+) -->$", re.MULTILINE)

_write_lock = anyio.Lock()
"""One turn at a time; writes by other processes are detected by the hash of the file."""


async def write_project_files(session: Session) -> None:
    """Write the state of the chat and the figures of the project's chats."""
    try:
        section, alive, stats = (
            await _section(session),
            await _existing_sessions(session),
            await _stats(session),
        )
        workspace = session.environment.workspace()
        assert workspace is not None
        async with _write_lock:
            await anyio.to_thread.run_sync(
                _replace_file, workspace, EVENTS_FILE, _EVENTS_MARK, lambda old: _events(old, section, alive)
            )
            await anyio.to_thread.run_sync(
                _replace_file, workspace, STATS_FILE, _STATS_MARK, lambda old: stats
            )
    except Failure as failure:
        logger.warning("the files of `project.files` were not written", extra={"error": failure.message})


async def _section(session: Session) -> tuple[str, str]:
    """The chat's session id, and the text of its section."""
    chat = session.chat
    found = entries(await session.resume_snapshots.session_state())
    lines = [f"- {LABELS[entry.kind]}: {_line(entry.text)}" for entry in found]
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    head = (
        f"## {_line(chat.title or chat.key.value)}\n\n{counted(chat.turns, 'turns')}, the last at {when}.\n\n"
    )
    return chat.key.session_id, (head + "\n".join(lines))[:MAX_SECTION].rstrip() + "\n"


async def _existing_sessions(session: Session) -> set[str]:
    """The existing chats of the project: a purged one disappears from the file with the next turn."""
    paths = await _paths(session)
    return {chat.key.session_id for chat in await session.store.retention.chats_at(paths)}


async def _stats(session: Session) -> bytes:
    report = statistics_report(
        "project", await session.store.statistics(StatisticsScope(paths=tuple(await _paths(session))))
    )
    found = msgspec.to_builtins(report)
    text = msgspec.json.format(msgspec.json.encode({"writtenBy": "sidecar", **found}), indent=2)
    if len(text) > MAX_BYTES:
        short = {"writtenBy": "sidecar", **found, "tools": [], "days": [], "projects": []}
        text = msgspec.json.format(msgspec.json.encode(short), indent=2)
    return text + b"\n"


async def _paths(session: Session) -> list[str]:
    assert session.chat.project_path is not None
    return await session.store.retention.paths(await project_identity.find_project(session.chat.project_path))


def _events(old: str, section: tuple[str, str], alive: Collection[str]) -> bytes:
    """The file with this chat's section first, and those of other chats after it as far as they fit."""
    id, text = section
    _, *parts = _SECTION.split(old)
    others = [(name, body.strip() + "\n") for name, body in zip(parts[::2], parts[1::2], strict=True)]
    kept = [(id, text), *((name, body) for name, body in others if name != id and name in alive)]
    whole = _EVENTS_MARK + "\n\n# What the chats of this project have come to\n"
    for name, body in kept:
        more = f"\n<!-- chat {name} -->\n\n{body}"
        if len((whole + more).encode()) > MAX_BYTES:
            break
        whole += more
    return whole.encode()


def _replace_file(workspace: Workspace, path: str, mark: str, make: Callable[[str], bytes]) -> None:
    """Replace the file that was read, if it is ours."""
    token = hashlib.sha256(path.encode()).hexdigest()[:16]
    writing.remove_leftovers(workspace, path, token)
    old = writing.read_current(workspace, path, MAX_OWN_FILE_BYTES)
    if old is not None and not old.startswith(mark.encode()):
        raise Refused("denied", f"{path} is there and was not written by sidecar", reason="exists")
    new = make((old or b"").decode(errors="replace"))
    if new != old:
        writing.replace(workspace, path, writing.digest(old) if old is not None else None, new, token=token)


def _line(text: str) -> str:
    return " ".join(text.split())
