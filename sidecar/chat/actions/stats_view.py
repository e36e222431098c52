"""Statistics as Markdown with bars, for `/stats` and `sidecar stats`. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...model.figures import DayStatistics, ProjectStatistics, StatisticsReport
from ...text.plural import counted
from .command_views import markdown_table, share_bar

MAX_TOOLS = 12
MAX_DAYS = 14
MAX_PROJECTS = 10
"""Rows of a table on a screen; an app gets more."""

UNKNOWN = "not measured"

_SCOPES = {"chat": "This chat", "project": "This project", "all": "All chats"}


def statistics_markdown(figures: StatisticsReport) -> str:
    parts = [
        _head(figures),
        _tokens(figures),
        _cost(figures),
        _savings(figures),
        _work(figures),
        _days(figures.days),
        _projects(figures.projects) if figures.scope == "all" else "",
        _disk(figures),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(figures: StatisticsReport) -> str:
    names = (
        ("turns", "messages", "events")
        if figures.scope == "chat"
        else ("chats", "turns", "messages", "events")
    )
    counts = [counted(getattr(figures, name), name) for name in names]
    last = figures.last_activity
    words = f"**{_SCOPES[figures.scope]}**: {', '.join(counts)}"
    words += f"; last active {time.strftime('%Y-%m-%d %H:%M', time.localtime(last / 1000))}." if last else "."
    if figures.purged_chats:
        chats, turns = counted(figures.purged_chats, "chats"), counted(figures.purged_turns, "turns")
        words += (
            f" What was measured counts {chats} too that {'was' if figures.purged_chats == 1 else 'were'}"
        )
        words += f" purged, with {turns}."
    return words


def _tokens(figures: StatisticsReport) -> str:
    if not figures.counted_turns:
        return f"Tokens: {UNKNOWN}; no provider has reported any."
    rows = [
        ("sent to models", figures.input_tokens),
        ("of these cached", figures.cached_tokens),
        ("written by models", figures.output_tokens),
    ]
    most = max(1, *(value or 0 for _, value in rows))
    table = markdown_table(
        [
            {"tokens": name, "count": _number(value), "": share_bar(value / most) if value else ""}
            for name, value in rows
        ]
    )
    told = figures.counted_turns
    return (
        table
        if told == figures.turns + figures.purged_turns
        else f"{table}\n\nAs reported for {counted(told, 'turns')}."
    )


def _cost(figures: StatisticsReport) -> str:
    if figures.cost is None:
        return "Cost: not known; these models have no known price." if figures.counted_turns else ""
    priced, turns = figures.priced_turns, figures.counted_turns
    of = (
        ""
        if priced == turns
        else f", of the {priced:,} of {counted(turns, 'turns')} whose model has a known price"
    )
    return f"Cost: {_dollars(figures.cost)} by list prices{of}."


def _savings(figures: StatisticsReport) -> str:
    captured = figures.captured
    if captured is None and figures.returned is None:
        return f"Kept out of the window: {UNKNOWN}; no output went to the index."
    back = "none" if figures.returned is None else f"{figures.returned:,}"
    if captured is None:
        head = f"**Kept out of the window**: {UNKNOWN}; {back} of what was stored before came back"
    else:
        kept = figures.kept_out or 0
        share = f" ({kept / captured:.0%})" if captured and kept > 0 else ""
        head = f"**Kept out of the window**: {kept:,} tokens{share} of {captured:,} that tools gave;"
        head += f" {figures.sent or 0:,} were sent in their place, {back} came back"
    head += f" by {counted(figures.searches, 'searches')}." if figures.searches else "."
    tools = [tool for tool in figures.tools if tool.captured is not None or tool.returned is not None]
    most = max((abs(tool.kept_out or 0) for tool in tools), default=0) or 1
    rows = [
        {
            "tool": tool.name,
            "calls": tool.calls,
            "kept": _number(tool.captured),
            "sent": _number(tool.sent),
            "back": _number(tool.returned),
            "spared": share_bar(tool.kept_out / most) if tool.kept_out and tool.kept_out > 0 else "",
        }
        for tool in tools[:MAX_TOOLS]
    ]
    return f"{head}\n\n{markdown_table(rows)}" if rows else head


def _work(figures: StatisticsReport) -> str:
    words = []
    if figures.compactions:
        saved = f"{figures.compaction_tokens:,} tokens"
        words.append(f"{counted(figures.compactions, 'compactions')} took {saved} out of the window.")
    if figures.fetches is not None:
        words.append(
            f"{counted(figures.fetches, 'pages')} fetched, {figures.fetch_hits or 0} out of the cache."
        )
    return " ".join(words)


def _days(days: Sequence[DayStatistics]) -> str:
    shown = [(day, day.input_tokens) for day in days if day.input_tokens is not None][-MAX_DAYS:]
    if len(shown) < 2:
        return ""
    most = max(sent + (day.output_tokens or 0) for day, sent in shown) or 1
    priced = any(day.cost is not None for day, _ in shown)
    rows = []
    for day, sent in shown:
        total = sent + (day.output_tokens or 0)
        row = {"day": day.day, "tokens": f"{total:,}", "": share_bar(total / most) if total else ""}
        cost = "" if day.cost is None else _dollars(day.cost)
        rows.append({**row, "cost": cost} if priced else row)
    return markdown_table(rows)


def _projects(projects: Sequence[ProjectStatistics]) -> str:
    if not projects:
        return ""
    most = max((project.input_tokens or 0 for project in projects), default=0) or 1
    rows = [
        {
            "project": project.path,
            "chats": project.chats,
            "turns": project.turns,
            "tokens": _number(project.input_tokens),
            "": share_bar(project.input_tokens / most) if project.input_tokens else "",
        }
        for project in projects[:MAX_PROJECTS]
    ]
    more = len(projects) - MAX_PROJECTS
    return markdown_table(rows) + (f"\n\n… and {more} more." if more > 0 else "")


def _disk(figures: StatisticsReport) -> str:
    index = figures.index
    words = [f"Database: {_size(figures.database_bytes)}"]
    if figures.blobs:
        words.append(f"{counted(figures.blobs, 'blobs')} of {_size(figures.blob_bytes)}")
    if index.sources:
        on_disk = f", {_size(index.disk_bytes)} on the disk" if index.disk_bytes is not None else ""
        words.append(f"{counted(index.sources, 'texts')} of {_size(index.text_bytes)} in the index{on_disk}")
    return "; ".join(words) + "."


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
