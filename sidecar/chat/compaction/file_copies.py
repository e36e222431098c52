"""Copies of the open files that a compaction collects: one per file, in the version that the model knows.

That is the version of the turns, not of the disk: a diff that a turn appends meanwhile is based on it. The next
prompt that needs the file gets later changes on disk as a diff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import anyio.to_thread
import msgspec

from ...context.budget import ConfiguredCaps, caps
from ...context.excerpts import excerpt
from ...context.fences import fence_text
from ...model.content import SentBlock
from ...model.failures import Failure
from ...store.store import Store
from ...workspace.text import NotText, decode_text
from ..request.file_versions import KnownVersion
from ..request.token_meter import TokenMeter
from ..tool_calls.edits import MAX_COMPARED_BYTES
from ..tool_calls.environment import ToolEnvironment


class FileCopy(msgspec.Struct, frozen=True):
    """A copy and its text, which has no blob yet."""

    kept: SentBlock
    text: str


async def collect_copies(
    store: Store,
    environment: ToolEnvironment,
    meter: TokenMeter,
    total: int,
    known: Mapping[str, KnownVersion],
) -> list[FileCopy]:
    """Copies of the open files that the model has, pinned and newest first, within the files' share of the budget."""
    most = caps(total, ConfiguredCaps())
    left, found = most.open_files, list[FileCopy]()
    for path in await _readable_paths(environment):
        copy = known.get(path)
        text = await _version_text(store, copy) if copy else None
        if copy is None or text is None:
            continue  # it is sent when it is needed
        fit = partial(_fit_file, meter, environment.chat.epoch, path, text, min(left, most.per_file))
        drawn = await anyio.to_thread.run_sync(fit)
        if drawn:
            left -= meter.count(drawn)
            found.append(
                FileCopy(SentBlock(label=path, path=path, hash=copy.hash, source=copy.source), drawn)
            )
    return found


async def store_copies(store: Store, found: Sequence[FileCopy]) -> list[SentBlock]:
    if not found:
        return []
    texts = [one.text.encode(errors="replace") for one in found]
    infos = await store.blobs.put_all(texts, "text/plain; charset=utf-8")
    return [msgspec.structs.replace(one.kept, ref=info.id) for one, info in zip(found, infos, strict=True)]


async def _readable_paths(environment: ToolEnvironment) -> list[str]:
    """The open files that may be sent."""
    try:
        workspace = environment.workspace()
        if workspace is None:
            return []
        rules = await environment.read_rules()
        listed = [
            (workspace.relative(file.path), file.is_chosen) for file in environment.files.display_order()
        ]
        return [path for path, chosen in listed if not rules.skip_reason(path, chosen=chosen)]
    except Failure:
        return []  # the project is gone, and its files with it


async def _version_text(store: Store, copy: KnownVersion) -> str | None:
    try:
        _, data = await store.blobs.read(copy.source or "", 0, MAX_COMPARED_BYTES)
        return decode_text(data).plain
    except (Failure, NotText):
        return None


def _fit_file(meter: TokenMeter, secret: str, path: str, text: str, space: int) -> str:
    """The fenced file within `space` tokens; "" when nothing useful fits."""
    draw = partial(fence_text, secret, f"file:{path}", f"file {path}")
    whole = draw(text)
    if meter.count(whole) <= space:
        return whole
    inner = space - meter.count(draw("")) - 8
    part = excerpt(text, "", inner, meter.count, path=path) if inner > 0 else ""
    made = draw(part) if part else ""
    return made if meter.count(made) <= space else ""
