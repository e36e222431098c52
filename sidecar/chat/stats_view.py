"""Statistics as Markdown with bars, from what `stats/read` tells: for `/stats` in a chat and `sidecar stats`. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .command_views import as_table, bar

MAX_TOOLS = 12
MAX_DAYS = 14
MAX_PROJECTS = 10
"""Rows of a table on a screen; an app is given more."""

UNKNOWN = "not measured"

_SCOPES = {"chat": "This chat", "project": "This project", "all": "All chats"}

Json = dict[str, Any]


def drawn(figures: Json) -> str:
    parts = [
        _head(figures),
        _tokens(figures),
        _cost(figures),
        _kept_out(figures),
        _work(figures),
        _days(figures["days"]),
        _projects(figures["projects"]) if figures["scope"] == "all" else "",
        _disk(figures),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(figures: Json) -> str:
    names = (
        ("turns", "messages", "events")
        if figures["scope"] == "chat"
        else ("chats", "turns", "messages", "events")
    )
    counts = [_count(figures[name], name) for name in names]
    last = figures["lastActivity"]
    words = f"**{_SCOPES[figures['scope']]}**: {', '.join(counts)}"
    words += f"; last active {time.strftime('%Y-%m-%d %H:%M', time.localtime(last / 1000))}." if last else "."
    if figures["purgedChats"]:
        chats, turns = _count(figures["purgedChats"], "chats"), _count(figures["purgedTurns"], "turns")
        words += (
            f" What was measured counts {chats} too that {'was' if figures['purgedChats'] == 1 else 'were'}"
        )
        words += f" purged, with {turns}."
    return words


def _tokens(figures: Json) -> str:
    if not figures["countedTurns"]:
        return f"Tokens: {UNKNOWN}; no provider has told any."
    rows = [
        ("sent to models", figures["inputTokens"]),
        ("of these cached", figures["cachedTokens"]),
        ("written by models", figures["outputTokens"]),
    ]
    most = max(1, *(value for _, value in rows))
    table = as_table(
        [
            {"tokens": name, "count": f"{value:,}", "": bar(value / most) if value else ""}
            for name, value in rows
        ]
    )
    told = figures["countedTurns"]
    return (
        table
        if told == figures["turns"] + figures["purgedTurns"]
        else f"{table}\n\nAs told for {_count(told, 'turns')}."
    )


def _cost(figures: Json) -> str:
    if figures["cost"] is None:
        return "Cost: not known; these models have no known price." if figures["countedTurns"] else ""
    priced, counted = figures["pricedTurns"], figures["countedTurns"]
    of = "" if priced == counted else f", of the {priced} turns of {counted} whose model has a known price"
    return f"Cost: {_dollars(figures['cost'])} by list prices{of}."


def _kept_out(figures: Json) -> str:
    captured = figures["captured"]
    if captured is None and figures["returned"] is None:
        return f"Kept out of the window: {UNKNOWN}; no output went to the index."
    kept, returned = figures["keptOut"], figures["returned"] or 0
    share = f" ({kept / captured:.0%})" if captured and kept > 0 else ""
    head = f"**Kept out of the window**: {kept:,} tokens{share} of {captured or 0:,} that tools gave;"
    head += f" {figures['sent'] or 0:,} were sent in their place, {returned:,} came back"
    head += f" by {_count(figures['searches'], 'searches')}." if figures["searches"] else "."
    tools = [
        tool for tool in figures["tools"] if tool["captured"] is not None or tool["returned"] is not None
    ]
    most = max((abs(tool["keptOut"] or 0) for tool in tools), default=0) or 1
    rows = [
        {
            "tool": tool["name"],
            "calls": tool["calls"],
            "kept": _number(tool["captured"]),
            "sent": _number(tool["sent"]),
            "back": _number(tool["returned"]),
            "spared": bar(tool["keptOut"] / most) if (tool["keptOut"] or 0) > 0 else "",
        }
        for tool in tools[:MAX_TOOLS]
    ]
    return f"{head}\n\n{as_table(rows)}" if rows else head


def _work(figures: Json) -> str:
    words = []
    if figures["compactions"]:
        saved = f"{figures['compactionTokens']:,} tokens"
        words.append(f"{_count(figures['compactions'], 'compactions')} took {saved} out of the window.")
    if figures["fetches"] is not None:
        words.append(
            f"{_count(figures['fetches'], 'pages')} fetched, {figures['fetchHits'] or 0} out of the cache."
        )
    return " ".join(words)


def _days(days: Sequence[Json]) -> str:
    shown = [day for day in days if day["inputTokens"] is not None][-MAX_DAYS:]
    if len(shown) < 2:
        return ""
    most = max(day["inputTokens"] + (day["outputTokens"] or 0) for day in shown) or 1
    priced = any(day["cost"] is not None for day in shown)
    rows = []
    for day in shown:
        total = day["inputTokens"] + (day["outputTokens"] or 0)
        row = {"day": day["day"], "tokens": f"{total:,}", "": bar(total / most) if total else ""}
        cost = "" if day["cost"] is None else _dollars(day["cost"])
        rows.append({**row, "cost": cost} if priced else row)
    return as_table(rows)


def _projects(projects: Sequence[Json]) -> str:
    if not projects:
        return ""
    most = max((project["inputTokens"] or 0 for project in projects), default=0) or 1
    rows = [
        {
            "project": project["path"],
            "chats": project["chats"],
            "turns": project["turns"],
            "tokens": _number(project["inputTokens"]),
            "": bar(project["inputTokens"] / most) if project["inputTokens"] else "",
        }
        for project in projects[:MAX_PROJECTS]
    ]
    more = len(projects) - MAX_PROJECTS
    return as_table(rows) + (f"\n\n… and {more} more." if more > 0 else "")


def _disk(figures: Json) -> str:
    index = figures["index"]
    words = [f"Database: {_size(figures['databaseBytes'])}"]
    if figures["blobs"]:
        words.append(f"{_count(figures['blobs'], 'blobs')} of {_size(figures['blobBytes'])}")
    if index["sources"]:
        on_disk = f", {_size(index['diskBytes'])} on the disk" if index.get("diskBytes") is not None else ""
        words.append(
            f"{_count(index['sources'], 'texts')} of {_size(index['textBytes'])} in the index{on_disk}"
        )
    return "; ".join(words) + "."


def _count(number: int, name: str) -> str:
    one = {"searches": "search", "entries": "entry"}.get(name, name[:-1])
    return f"{number:,} {one if number == 1 else name}"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}"


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
