"""The answers of slash commands, as data for an app and as Markdown for people. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...context.materials import Manifest
from ...model import JsonObject
from ...model.files import Patch
from ...model.index import Results, Source
from ...text.plural import counted
from .branches import RewindResult
from .files import FilesChanged

if TYPE_CHECKING:
    from .snapshots import RenderedSnapshot

BAR_WIDTH = 20
"""Characters of a full bar."""

MAX_ROWS = 30
"""Rows of a long list; the app gets them all."""

TableRow = Mapping[str, object]
"""A row of a table; its values are shown as text."""


class CommandReply(msgspec.Struct, frozen=True):
    """A command's answer: its data for the app, and Markdown. `then` runs once the answer is stored: for what would
    remove the chat that stores it.
    """

    data: JsonObject
    markdown: str
    then: Callable[[], Awaitable[None]] | None = None


def files_view(changed: FilesChanged) -> CommandReply:
    rows = [
        {
            "path": viewed.file.path,
            "pinned": viewed.file.pinned,
            "openedBy": viewed.file.opened_by,
            "state": viewed.state,
        }
        for viewed in changed.files
    ]
    shown = [
        {"file": row["path"], "pinned": "yes" if row["pinned"] else "", "state": row["state"]} for row in rows
    ]
    notes = (
        [f"Not pinned, because all pins are in use: {', '.join(changed.not_pinned)}"]
        if changed.not_pinned
        else []
    )
    notes += [f"{changed.left} more matched and did not fit."] if changed.left else []
    markdown = "\n\n".join([markdown_table(shown) if shown else "No files are open.", *notes])
    return CommandReply({"files": rows, "notPinned": changed.not_pinned, "left": changed.left}, markdown)


def patches_view(patches: Sequence[Patch]) -> CommandReply:
    rows: list[TableRow] = [
        {
            "n": number,
            "file": patch.file_path,
            "change": patch.summary,
            "by": patch.tool_name,
            "status": patch.status,
        }
        for number, patch in enumerate(patches, 1)
    ]
    return CommandReply(
        {"items": msgspec.to_builtins(patches)}, markdown_table(rows) if rows else "No changes yet."
    )


def diff_view(patches: Sequence[Patch]) -> CommandReply:
    texts = [
        f"**{patch.file_path}** ({patch.summary}, {patch.status})\n\n````diff\n{patch.unified_diff or ''}\n````"
        for patch in patches
    ]
    return CommandReply({"items": msgspec.to_builtins(patches)}, "\n\n".join(texts))


def search_view(found: Results) -> CommandReply:
    hits = [
        {
            "id": hit.id,
            "source": hit.source.label,
            "title": hit.title,
            "lines": {"start": hit.lines[0], "end": hit.lines[1]},
            "text": hit.text,
        }
        for hit in found.hits
    ]
    parts = [
        f"**{hit.source.label}**, lines {hit.lines[0]}-{hit.lines[1]} (`{hit.source.id}`)\n\n````\n{hit.text}\n````"
        for hit in found.hits
    ]
    if found.corrected:
        parts.insert(0, f"Nothing has these words as written; searched for *{found.corrected}*.")
    return CommandReply(
        {"hits": hits, "tokens": found.tokens, "corrected": found.corrected},
        "\n\n".join(parts) or "Nothing holds these words.",
    )


def added_sources_view(sources: Sequence[Source], skipped: Sequence[tuple[str, str]]) -> CommandReply:
    rows = [{"file": source.label, "lines": source.lines, "tokens": source.tokens} for source in sources]
    left = [{"left out": path, "why": reason} for path, reason in skipped]
    parts = [markdown_table(table) for table in (rows[:MAX_ROWS], left[:MAX_ROWS]) if table]
    more = max(0, len(rows) - MAX_ROWS) + max(0, len(left) - MAX_ROWS)
    parts += [f"… and {more} more."] if more else []
    data = {"sources": [{"id": source.id, **row} for source, row in zip(sources, rows, strict=True)]}
    return CommandReply({**data, "skipped": left}, "\n\n".join(parts) or "There is nothing to index.")


def sources_view(sources: Sequence[Source]) -> CommandReply:
    rows: list[TableRow] = [
        {
            "id": source.id,
            "what": source.label,
            "kind": source.kind,
            "lines": source.lines,
            "tokens": source.tokens,
        }
        for source in sources
    ]
    return CommandReply(
        {"items": rows}, markdown_table(rows) if rows else "This chat has nothing in the index yet."
    )


def rewind_view(rewound: RewindResult) -> CommandReply:
    words = (
        f"Back at turn {rewound.head or 'none'}: {counted(len(rewound.hidden), 'turns')} hidden,"
        f" {len(rewound.shown)} shown."
    )
    rows = [
        {"file": change.path, "status": ": ".join(filter(None, (change.status, change.reason)))}
        for change in rewound.files
    ]
    return CommandReply(
        msgspec.to_builtins(rewound), "\n\n".join([words, *([markdown_table(rows)] if rows else [])])
    )


def snapshots_view(found: Sequence[RenderedSnapshot]) -> CommandReply:
    rows = [
        {"id": one.id, "kind": one.kind, "taken": one.reason, "turns": one.turns, "tokens": one.tokens}
        | {"": "hidden" if one.hidden else ""}
        for one in found
    ]
    items = [{name: getattr(one, name) for name in _SNAPSHOT_FIELDS} for one in found]
    return CommandReply({"items": items}, markdown_table(rows) if rows else "This chat has no turns yet.")


def snapshot_view(found: RenderedSnapshot) -> CommandReply:
    data = {name: getattr(found, name) for name in _SNAPSHOT_FIELDS}
    return CommandReply({**data, "text": found.text}, f"````text\n{found.text}\n````")


_SNAPSHOT_FIELDS = ("id", "kind", "reason", "turns", "ts", "tokens", "hidden")


def context_view(manifest: Manifest) -> str:
    """The manifest as a bar for each block: its share of the budget, and the gate that included it."""
    total = max(1, manifest.budget or manifest.used)
    rows = [
        {
            "block": block.label,
            "share": share_bar(block.tokens / total) if block.is_sent else "",
            "tokens": block.tokens,
            "sent": block.included,
            "gate": block.gate,
        }
        for block in manifest.blocks
    ]
    how = "exact" if manifest.exact else "estimated"
    used, share = manifest.used, manifest.used / total
    head = f"**{manifest.model}**: {used:,} of {total:,} tokens ({share:.0%}, {how})"
    head += f", {manifest.reserve or 0:,} reserved for the answer"
    return f"{head}\n\n{markdown_table(rows)}"


def share_bar(share: float) -> str:
    """A bar for a share of the whole; never empty."""
    eighths = round(min(1.0, share) * BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "") or "▏"


def markdown_table(rows: Sequence[TableRow]) -> str:
    """Rows with the same keys as a Markdown table."""
    if not rows:
        return "Nothing."
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_table_cell(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


_MARKDOWN_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|"} | {"\n": " "})


def _table_cell(value: object) -> str:
    """A value as text, escaped for Markdown: a file may be called `__init__.py`."""
    return str("" if value is None else value).translate(_MARKDOWN_ESCAPES)
