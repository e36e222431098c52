"""Chats of other programs as short lines, which tests compare as a whole."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from sidecar.foreign.base import ForeignChat, FoundChat, Problem, Reader
from sidecar.model.content import Item

SAMPLES = Path(__file__).parent / "samples"
"""Recorded from the real programs by `make test-platforms`; those of exports are written by their documentation."""

CUT = 28

_ATTACHED = {"image": " +image", "audio": " +audio", "resource": " +file"}


def lay_out(platform: str, folder: Path) -> Path:
    """Copy a sample to a folder, with its databases."""
    target = folder / platform
    shutil.copytree(SAMPLES / platform, target)
    for script in target.rglob("*.sql"):
        db = sqlite3.connect(script.with_suffix(".db"))
        db.executescript(script.read_text("utf-8"))
        db.close()
    return target


def read_all(reader: Reader, path: Path) -> dict[str, ForeignChat]:
    """The chats below a path, by id; nothing there may be a problem."""
    found = list(reader.find(str(path)))
    assert [each for each in found if isinstance(each, Problem)] == []
    return {each.id: each.read() for each in found if isinstance(each, FoundChat)}


def shown(chat: ForeignChat) -> list[str]:
    """A line for each turn and item; turns are numbered, and say which one they follow."""
    numbers = {turn.id: at for at, turn in enumerate(chat.turns, 1)}
    lines: list[str] = []
    for turn in chat.turns:
        after = f" after {numbers[turn.parent_turn_id]}" if turn.parent_turn_id else ""
        head = " (head)" if turn.id == chat.head else ""
        lines.append(f"{numbers[turn.id]}{after}: {turn.model or '-'}, {turn.reason}{head}")
        lines += [f"  {_item(item)}" for item in turn.items]
    return lines


def _item(item: Item) -> str:
    if item.type == "tool":
        changed = "".join(
            f" [{change['kind']} {change['path']} {'known' if change.get('afterHash') else 'unknown'}]"
            for change in item.changes or []
        )
        media = " +image" if (item.output or {}).get("content") else ""
        return f"{item.name} {item.status}: {_cut(item.output_text)}{media}{changed}"
    attached = "".join(_ATTACHED.get(block.type, "") for block in item.content or [])
    name = f" ({item.name or item.kind})" if item.name or item.kind else ""
    return f"{item.type}{name}: {_cut(item.text or '')}{attached}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CUT else f"{line[:CUT]}…"
