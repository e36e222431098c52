"""Copies of the open files as a compaction gathers them: one of each, in the version that the model knows.

That version is the turns', not the disk's: a diff that a turn appends meanwhile begins with it. What has changed on
disk since is told as a diff by the next prompt that needs the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import anyio.to_thread
import msgspec

from ..context.budget import Wanted, caps
from ..context.excerpts import excerpt
from ..context.fences import fenced
from ..model.content import Kept
from ..model.failures import Failure
from ..store.store import Store
from ..workspace.text import NotText, decoded
from .copies import Copy
from .desk import Desk
from .edits import MAX_LOOKED_BYTES
from .measuring import Measure


class Gathered(msgspec.Struct, frozen=True):
    """A copy and its text, which has no blob yet."""

    kept: Kept
    text: str


async def gather(
    store: Store, desk: Desk, measure: Measure, total: int, known: Mapping[str, Copy]
) -> list[Gathered]:
    """Of the open files those that the model has, pinned and newest first, within what files may take of the budget."""
    most = caps(total, Wanted())
    left, found = most.open_files, list[Gathered]()
    for path in _paths(desk):
        copy = known.get(path)
        text = await _text(store, copy) if copy else None
        if copy is None or text is None:
            continue  # it is sent when it is needed
        fit = partial(_fitted, measure, desk.chat.epoch, path, text, min(left, most.per_file))
        drawn = await anyio.to_thread.run_sync(fit)
        if drawn:
            left -= measure.count(drawn)
            found.append(Gathered(Kept(label=path, path=path, hash=copy.hash, source=copy.source), drawn))
    return found


async def keep(store: Store, found: Sequence[Gathered]) -> list[Kept]:
    if not found:
        return []
    texts = [one.text.encode(errors="replace") for one in found]
    infos = await store.put_blobs(texts, "text/plain; charset=utf-8")
    return [msgspec.structs.replace(one.kept, ref=info.id) for one, info in zip(found, infos, strict=True)]


def _paths(desk: Desk) -> list[str]:
    try:
        workspace = desk.workspace()
        return [workspace.relative(file.path) for file in desk.files.listed()] if workspace else []
    except Failure:
        return []  # the project is gone, and its files with it


async def _text(store: Store, copy: Copy) -> str | None:
    try:
        _, data = await store.read_blob(copy.source or "", 0, MAX_LOOKED_BYTES)
        return decoded(data).plain
    except (Failure, NotText):
        return None


def _fitted(measure: Measure, secret: str, path: str, text: str, room: int) -> str:
    """The file within so many tokens, fenced; "" when nothing useful fits."""
    draw = partial(fenced, secret, f"file:{path}", f"file {path}")
    whole = draw(text)
    if measure.count(whole) <= room:
        return whole
    inner = room - measure.count(draw("")) - 8
    part = excerpt(text, "", inner, measure.count, path=path) if inner > 0 else ""
    made = draw(part) if part else ""
    return made if measure.count(made) <= room else ""
