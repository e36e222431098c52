"""`.context/events.md` and `.context/stats.json` in a project, anew after each turn of its chats, for those who asked
for them by `project.files`.

They are written like any file of a project: beneath its folder, whole or not at all. A file of that name that does not
begin as ours do is somebody else's, and left alone. What could not be written now is written after the next turn.
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

from ..model.failures import Failure, Refused
from ..model.figures import told
from ..store.statistics import Of
from ..workspace import writing
from ..workspace.paths import Workspace
from . import attribution
from .session import Session

logger = logging.getLogger(__name__)

EVENTS = ".context/events.md"
STATS = ".context/stats.json"

MAX_BYTES = 64 * 1024
"""Of a file: what a person or a model reads at once. The sections of the chats that were quiet for longest go first."""

MAX_SECTION = 8 * 1024
"""Characters of one chat's section."""

MAX_OURS = 4 * MAX_BYTES
"""A larger file was not written by us."""

_EVENTS_MARK = (
    "<!-- Written by sidecar after each turn. It holds what was asked: .context/ belongs into .gitignore. -->"
)
_STATS_MARK = '{\n  "writtenBy": "sidecar",'
_SECTION = re.compile(r"^<!-- chat (sc-[a-z0-9-]+) -->$", re.MULTILINE)

_writing = anyio.Lock()
"""One turn's at a time: what another process writes meanwhile is noticed by its hash."""


async def write(session: Session) -> None:
    """Tell the project what its chat has come to, and what its chats took."""
    try:
        section, alive, stats = await _section(session), await _alive(session), await _stats(session)
        workspace = session.desk.workspace()
        assert workspace is not None
        async with _writing:
            await anyio.to_thread.run_sync(
                _put, workspace, EVENTS, _EVENTS_MARK, lambda old: _events(old, section, alive)
            )
            await anyio.to_thread.run_sync(_put, workspace, STATS, _STATS_MARK, lambda old: stats)
    except Failure as failure:
        logger.warning(
            "the project's files about its chats were not written", extra={"error": failure.message}
        )


async def _section(session: Session) -> tuple[str, str]:
    """The chat's session id, and what its section says."""
    from ..context.continuity import entries
    from ..context.continuity.drawing import LABELS

    chat = session.chat
    found = entries(await session.continuity.course())
    lines = [f"- {LABELS[entry.kind]}: {_line(entry.text)}" for entry in found]
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    head = f"## {_line(chat.title or chat.key.value)}\n\n{chat.turns} turns, the last at {when}.\n\n"
    return chat.key.session_id, (head + "\n".join(lines))[:MAX_SECTION].rstrip() + "\n"


async def _alive(session: Session) -> set[str]:
    """The chats of the project that there are: what was purged leaves the file with the next turn."""
    paths = await _paths(session)
    return {chat.key.session_id for chat in await session.store.custody.chats_at(paths)}


async def _stats(session: Session) -> bytes:
    found = told("project", await session.store.statistics(Of(paths=tuple(await _paths(session)))))
    text = msgspec.json.format(msgspec.json.encode({"writtenBy": "sidecar", **found}), indent=2)
    if len(text) > MAX_BYTES:
        short = {"writtenBy": "sidecar", **found, "tools": [], "days": [], "projects": []}
        text = msgspec.json.format(msgspec.json.encode(short), indent=2)
    return text + b"\n"


async def _paths(session: Session) -> list[str]:
    assert session.chat.project_path is not None
    return await session.store.custody.paths(await attribution.found(session.chat.project_path))


def _events(old: str, section: tuple[str, str], alive: Collection[str]) -> bytes:
    """The file with this chat's section first, and those of other chats behind it as far as they fit."""
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


def _put(workspace: Workspace, path: str, mark: str, make: Callable[[str], bytes]) -> None:
    """Write the file over the one that was looked at, if that is ours."""
    token = hashlib.sha256(path.encode()).hexdigest()[:16]
    writing.sweep(workspace, path, token)
    old = writing.current(workspace, path, MAX_OURS)
    if old is not None and not old.startswith(mark.encode()):
        raise Refused("denied", f"{path} is there and was not written by sidecar", reason="exists")
    new = make((old or b"").decode(errors="replace"))
    if new != old:
        writing.replace(workspace, path, writing.digest(old) if old is not None else None, new, token=token)


def _line(text: str) -> str:
    return " ".join(text.split())
