"""The index as one chat uses it: what its tools print is kept there, and what its model looks for is found there.

A chat sees its own sources and those of its project. What happens in the index itself is not known here.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress

import anyio
import anyio.to_thread

from ..model.content import Item, Turn
from ..model.failures import Failure, StorageFailed
from ..model.figures import Measured
from ..model.index import NewSource, Query, Results, Scope, Source, SourceKind, Whole
from ..tools.base import Wrong
from ..tools.toolbox import Kept
from ..workspace.paths import Workspace
from .desk import Desk
from .measuring import rough_count

logger = logging.getLogger(__name__)

WORTH_FINDING = 512
"""Bytes: a shorter output costs less than the words that would stand for it."""

PREVIEW_TOKENS = 300
"""What stands for an output that is kept out of the window: enough to see how it went and what is in it."""

LOOKS_ITSELF = ("search_context", "get_output", "index_path")
"""Tools that show what is kept already."""

MAX_WHOLE = 2**31 - 1
"""Bytes: all of an output; how much of one is kept at all is the tool's own bound."""

IN_A_THREAD = 64 * 1024
"""Characters: the preview of a longer output is made beside the other chats."""

MAX_REMEMBERED = 500
"""Outputs of a chat whose repetition is noticed, so that a file that is read ten times is found once."""


class ChatLibrary:
    """What one call of a tool may do with the index."""

    def __init__(self, desk: Desk, item: Item, workspace: Workspace | None) -> None:
        self._desk = desk
        self._item = item
        self._workspace = workspace

    async def keep(self, text: str, label: str, kind: SourceKind, *, path: str | None = None) -> Source:
        return await _once(self._desk, _new(self._desk, self._item, text, label, kind, path))

    async def search(
        self,
        queries: Sequence[str],
        *,
        scope: Scope = "chat",
        source: str | None = None,
        kind: SourceKind | None = None,
        limit: int = 5,
        max_tokens: int = 1200,
    ) -> list[Results]:
        chat = self._desk.chat
        if scope == "project" and chat.project_path is None:
            scope = "chat"
        asked = [
            Query(
                text=query,
                scope=scope,
                chat=chat.id,
                project=chat.project_path,
                source=source,
                kind=kind,
                limit=limit,
                max_tokens=max(1, max_tokens // len(queries)),
            )
            for query in queries
        ]
        index = self._desk.workshop.index()
        found = await index.search(asked)
        return await index.search(asked) if await self._changed(found) else found

    async def _changed(self, found: Sequence[Results]) -> bool:
        """Whether a file that was found has other bytes now; it is kept anew then."""
        if self._workspace is None:
            return False
        project = self._desk.chat.project_path
        sources = {hit.source.id: hit.source for results in found for hit in results.hits}
        files = [source for source in sources.values() if source.path and source.kind == "file"]
        changed = False
        for source in [file for file in files if file.project == project and file.chat is None]:
            assert source.path
            with suppress(Failure):  # a file that is gone or closed to us is found as it was
                now, _ = await self._desk.workshop.index().add_path(
                    self._workspace, source.path, chat=None, project=project
                )
                changed = changed or [each.id for each in now] != [source.id]
        return changed

    async def read(self, id: str, lines: tuple[int, int] | None = None) -> Whole:
        chat = self._desk.chat
        found = await self._desk.workshop.index().get(id, lines, chat=chat.id, project=chat.project_path)
        found = found or await _in_journal(self._desk, id, lines)
        if found is None:
            raise Wrong(
                f"Nothing is kept as {id[:80]!r}. Use an id out:… from a tool's output or from a search."
            )
        return found

    def count(self, text: str) -> int:
        return self._desk.workshop.index().count(text)

    async def preview(self, text: str, source: Source, intent: str | None = None) -> str:
        return await _preview(self._desk, text, source, intent)

    async def add_path(self, path: str) -> tuple[list[Source], list[tuple[str, str]]]:
        if self._workspace is None:
            raise Wrong("This chat has no project, so there are no files.")
        chat = self._desk.chat
        return await self._desk.workshop.index().add_path(
            self._workspace, path, chat=None, project=chat.project_path
        )


async def kept_anew(desk: Desk, turns: Sequence[Turn]) -> None:
    """Let the outputs of turns that came from elsewhere be found in this chat, too."""
    if not desk.settings.index.enabled:
        return
    for item in [item for turn in turns for item in turn.items if (item.output or {}).get("source")]:
        await _kept_once(desk, item, await _whole_of(desk, item))


async def captured(
    desk: Desk, item: Item, text: str, *, shown: bool, cut: bool, source: str | None = None
) -> Kept:
    """Keep what a tool printed: as a blob when not all of it is sent, and in the index when it is worth finding.

    `shown` is what the model asked to see; `cut` says that even that is too long; `source` that the tool has kept it.
    """
    settings = desk.settings.index
    size = len(text.encode(errors="replace"))
    indexed = settings.enabled and source is None and size >= WORTH_FINDING and item.name not in LOOKS_ITSELF
    by_preview = indexed and not shown and size > settings.inline_max
    ref = None
    kept_source: Source | None = None

    async def keep_whole() -> None:
        nonlocal ref
        (kept,) = await desk.workshop.store.put_blobs([text.encode()], "text/plain; charset=utf-8")
        ref = kept.id

    async def keep_findable() -> None:
        nonlocal kept_source
        kept_source = await _kept_once(desk, item, text)

    async with anyio.create_task_group() as tasks:  # side by side, they share a commit
        if by_preview or cut:
            tasks.start_soon(keep_whole)
        if indexed:
            tasks.start_soon(keep_findable)
    if kept_source is None or not by_preview:
        return Kept(ref, kept_source.id if kept_source else source)
    preview = await _preview(desk, text, kept_source)
    measured = Measured(captured=kept_source.tokens, sent=desk.workshop.index().count(preview))
    return Kept(ref, kept_source.id, preview, measured)


async def _in_journal(desk: Desk, id: str, lines: tuple[int, int] | None) -> Whole | None:
    """An output that the index does not have: it was let go, or came along with a fork or an import."""
    item = await desk.workshop.store.item_of_source(desk.chat.id, id)
    if item is None:
        return None
    text = await _whole_of(desk, item)
    split = text.split("\n")
    first, last = (max(1, lines[0]), min(len(split), lines[1])) if lines else (1, len(split))
    source = Source(
        id=id,
        label=item.title or item.name or "tool",
        kind="output",
        chat=desk.chat.id,
        session_id=desk.chat.key.session_id,
        project=desk.chat.project_path,
        tool=item.name,
        path=None,
        ts=item.ended_at or item.started_at,
        bytes=len(text.encode(errors="replace")),
        lines=len(split),
        tokens=rough_count(text),
        chunks=0,
    )
    return Whole(source, "\n".join(split[first - 1 : last]), (first, last))


async def _whole_of(desk: Desk, item: Item) -> str:
    output = item.output or {}
    if "ref" not in output:
        return str(output.get("text") or "")
    _, data = await desk.workshop.store.read_blob(output["ref"], 0, MAX_WHOLE)
    return data.decode(errors="replace")


async def _kept_once(desk: Desk, item: Item, text: str) -> Source | None:
    """The source of an output. One that cannot be indexed is not found again, and harms nothing else."""
    try:
        return await _once(desk, _new(desk, item, text, item.title or item.name or "tool", "output", None))
    except StorageFailed:
        raise
    except Failure as failure:
        logger.warning("an output is not indexed", extra={"error": failure.message})
        return None


async def _once(desk: Desk, new: NewSource) -> Source:
    """The source of a text; the same text under the same label is one."""
    seen = hashlib.sha256(f"{new.label}\0{new.text}".encode(errors="replace")).digest()
    known = desk.kept_sources.get(seen)
    if known:
        return known
    source = await desk.workshop.index().keep(new)
    desk.kept_sources[seen] = source
    while len(desk.kept_sources) > MAX_REMEMBERED:
        del desk.kept_sources[next(iter(desk.kept_sources))]
    return source


async def _preview(desk: Desk, text: str, source: Source, intent: str | None = None) -> str:
    from ..index.preview import preview

    count = desk.workshop.index().count

    def make() -> str:
        return preview(
            text,
            label=source.label,
            id=source.id,
            intent=intent,
            max_tokens=PREVIEW_TOKENS,
            count=count,
            tail_lines=desk.settings.index.preview_tail_lines,
        )

    return await anyio.to_thread.run_sync(make) if len(text) > IN_A_THREAD else make()


def _new(desk: Desk, item: Item, text: str, label: str, kind: SourceKind, path: str | None) -> NewSource:
    chat = desk.chat
    return NewSource(
        text=text, label=label, kind=kind, chat=chat.id, project=chat.project_path, tool=item.name, path=path
    )
