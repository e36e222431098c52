"""What slash commands answer, as data for an app and as Markdown for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.files import Patch
from ..model.index import Results, Source
from .branches import Rewound
from .files import FilesChanged

if TYPE_CHECKING:
    from .snapshots import Drawn

BAR_WIDTH = 20
"""Characters of a whole budget."""

MAX_ROWS = 30
"""Of a long list; the app has them all."""

View = tuple[dict[str, Any], str]


def files_view(changed: FilesChanged) -> View:
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
        [f"Not pinned, as all pins are in use: {', '.join(changed.not_pinned)}"] if changed.not_pinned else []
    )
    notes += [f"{changed.left} more matched and found no room."] if changed.left else []
    markdown = "\n\n".join([as_table(shown) if shown else "No files are open.", *notes])
    return {"files": rows, "notPinned": changed.not_pinned, "left": changed.left}, markdown


def patches_view(patches: Sequence[Patch]) -> View:
    rows: list[dict[str, Any]] = [
        {
            "n": number,
            "file": patch.file_path,
            "change": patch.summary,
            "by": patch.tool_name,
            "status": patch.status,
        }
        for number, patch in enumerate(patches, 1)
    ]
    return {"items": msgspec.to_builtins(patches)}, as_table(rows) if rows else "No changes yet."


def diff_view(patches: Sequence[Patch]) -> View:
    texts = [
        f"**{patch.file_path}** ({patch.summary}, {patch.status})\n\n````diff\n{patch.unified_diff or ''}\n````"
        for patch in patches
    ]
    return {"items": msgspec.to_builtins(patches)}, "\n\n".join(texts)


def search_view(found: Results) -> View:
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
    return {"hits": hits, "tokens": found.tokens, "corrected": found.corrected}, "\n\n".join(
        parts
    ) or "Nothing holds these words."


def added_view(sources: Sequence[Source], skipped: Sequence[tuple[str, str]]) -> View:
    rows = [{"file": source.label, "lines": source.lines, "tokens": source.tokens} for source in sources]
    left = [{"left out": path, "why": reason} for path, reason in skipped]
    parts = [as_table(table) for table in (rows[:MAX_ROWS], left[:MAX_ROWS]) if table]
    more = max(0, len(rows) - MAX_ROWS) + max(0, len(left) - MAX_ROWS)
    parts += [f"… and {more} more."] if more else []
    data = {"sources": [{"id": source.id, **row} for source, row in zip(sources, rows, strict=True)]}
    return {**data, "skipped": left}, "\n\n".join(parts) or "There is nothing to index."


def sources_view(sources: Sequence[Source]) -> View:
    rows: list[dict[str, Any]] = [
        {
            "id": source.id,
            "what": source.label,
            "kind": source.kind,
            "lines": source.lines,
            "tokens": source.tokens,
        }
        for source in sources
    ]
    return {"items": rows}, as_table(rows) if rows else "Nothing of this chat is kept yet."


def rewound_view(rewound: Rewound) -> View:
    words = f"Back at turn {rewound.head or 'none'}: {len(rewound.hidden)} turns hidden, {len(rewound.shown)} shown."
    rows = [{"file": change.path, "status": change.status} for change in rewound.files]
    return msgspec.to_builtins(rewound), "\n\n".join([words, *([as_table(rows)] if rows else [])])


def snapshots_view(found: Sequence[Drawn]) -> View:
    rows = [
        {"id": one.id, "kind": one.kind, "taken": one.reason, "turns": one.turns, "tokens": one.tokens}
        | {"": "out of view" if one.hidden else ""}
        for one in found
    ]
    items = [{name: getattr(one, name) for name in _OF_A_SNAPSHOT} for one in found]
    return {"items": items}, as_table(rows) if rows else "This chat has no turns yet."


def snapshot_view(found: Drawn) -> View:
    data = {name: getattr(found, name) for name in _OF_A_SNAPSHOT}
    return {**data, "text": found.text}, f"````text\n{found.text}\n````"


_OF_A_SNAPSHOT = ("id", "kind", "reason", "turns", "ts", "tokens", "hidden")


def context_view(manifest: dict[str, Any]) -> str:
    """The manifest as a bar for each block: how much of the budget it takes, and why it is there."""
    total = max(1, manifest["budget"])
    rows = [
        {
            "block": block["label"],
            "share": bar(block["tokens"] / total) if block["included"] != "dropped" else "",
            "tokens": block["tokens"],
            "sent": block["included"],
            "gate": block["gate"],
        }
        for block in manifest["blocks"]
    ]
    counted = "exact" if manifest["exact"] else "estimated"
    used, share = manifest["used"], manifest["used"] / total
    head = f"**{manifest['model']}**: {used:,} of {total:,} tokens ({share:.0%}, {counted})"
    head += f", {manifest['reserve']:,} kept for the answer"
    return f"{head}\n\n{as_table(rows)}"


def bar(share: float) -> str:
    """A bar as long as a share of the whole; never quite nothing."""
    eighths = round(min(1.0, share) * BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "") or "▏"


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with the same keys as a Markdown table."""
    if not rows:
        return "Nothing."
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


_MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|"} | {"\n": " "})


def _cell(value: Any) -> str:
    """A value as text that Markdown leaves alone: a file may be called `__init__.py`."""
    return str("" if value is None else value).translate(_MARKUP)
