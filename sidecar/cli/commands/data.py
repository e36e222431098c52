"""`sidecar stats` and `sidecar purge`: show what is stored and used, and delete it."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from sidecar_client import Sidecar
from sidecar_protocol.messages import DataPurgeResult, PurgeCounts, StatsReadResult

from sidecar.model.figures import SHOWN_COUNTS, StatisticsReport
from sidecar.system.lazy import lazy_module
from sidecar.text.plural import counted_fields

from ..client import find_chat, run
from ..errors import CommandFailed
from ..terminal.markdown_blocks import print_blocks, printable

if TYPE_CHECKING:
    from sidecar.chat.actions import stats_view
else:
    stats_view = lazy_module("sidecar.chat.actions.stats_view")


def stats(options: Namespace) -> int:
    async def read(app: Sidecar) -> StatsReadResult:
        found: StatsReadResult = await app.call("stats/read", await _scope(app, options))
        return found

    figures = msgspec.to_builtins(run(options, read))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode())
        return 0
    print_blocks(
        Console(highlight=False), stats_view.statistics_markdown(msgspec.convert(figures, StatisticsReport))
    )
    return 0


def purge(options: Namespace) -> int:
    async def plan(app: Sidecar) -> DataPurgeResult:
        planned: DataPurgeResult = await app.call(
            "data/purge", {**await _scope(app, options), "dryRun": True}
        )
        return planned

    async def carry_out(app: Sidecar) -> DataPurgeResult:
        done: DataPurgeResult = await app.call("data/purge", {**await _scope(app, options), "confirm": True})
        return done

    if not options.yes and not _confirm(run(options, plan).removed, options):
        print("Nothing was purged.")
        return 1
    done = run(options, carry_out)
    print(f"Purged {_counts(done.removed)}; {done.bytes_freed:,} bytes given back.")
    for left in done.left:
        name = printable(left.chat_id or left.session_id)
        print(
            f"Left: {name}, as process {left.owner.pid} ({left.owner.client}) writes to it.", file=sys.stderr
        )
    return 1 if done.left else 0


async def _scope(app: Sidecar, options: Namespace) -> dict[str, Any]:
    if options.chat is not None:
        return {"scope": "chat", "sessionId": (await find_chat(app, options.chat)).session_id}
    if options.project is not None:
        return {"scope": "project", "projectPath": _absolute(options.project)}
    return {"scope": "all"}


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _confirm(planned: PurgeCounts, options: Namespace) -> bool:
    """Ask the user for confirmation; without a terminal nobody can agree."""
    if not sys.stdin.isatty():
        raise CommandFailed("--yes: give it to purge without being asked, as stdin is no terminal.")
    what = "chat" if options.chat is not None else "project" if options.project is not None else "all"
    named = {"chat": f"the chat {options.chat}", "project": f"all of {options.project}", "all": "everything"}[
        what
    ]
    print(printable(f"This removes {named} for good: {_counts(planned)}."))
    try:
        return input("Purge it? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False


def _counts(counts: PurgeCounts) -> str:
    return counted_fields(counts, (*SHOWN_COUNTS, "projects"))
