"""`sidecar chats` and `sidecar show`: list chats, and show their turns."""

from __future__ import annotations

import time
from argparse import Namespace

from rich.console import Console
from sidecar_client import Sidecar
from sidecar_protocol.messages import ChatSummary, Turn

from ..client import find_chat, last_turns, run
from ..errors import CommandFailed
from ..terminal.columns import print_columns
from ..terminal.turn_view import TurnWriter

PAGE = 200
"""Chats asked for at a time."""


def list_chats(options: Namespace) -> int:
    found = run(options, lambda app: _all_chats(app, options.archived, options.query))
    if not found:
        print("There are no such chats." if options.query or options.archived else "There are no chats yet.")
        return 0
    print_columns(("chat", "turns", "last", "title"), [_row(each) for each in found], wide=3)
    return 0


def show_chat(options: Namespace) -> int:
    if options.turns is not None and options.turns < 1:
        raise CommandFailed(
            f"--turns: {options.turns} is less than 1; give how many of the last turns to show."
        )

    async def read(app: Sidecar) -> list[Turn]:
        return await last_turns(await find_chat(app, options.chat), options.turns)

    writer = TurnWriter(Console(highlight=False), diffs=True)
    for turn in run(options, read):
        writer.write(turn)
    return 0


async def _all_chats(app: Sidecar, archived: bool, query: str | None) -> list[ChatSummary]:
    found: list[ChatSummary] = []
    cursor: str | None = None
    while True:
        page = await app.chats(archived=archived, query=query, cursor=cursor, limit=PAGE)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _row(each: ChatSummary) -> tuple[str, str, str, str]:
    last = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.last_activity / 1000))
    return each.chat_id or each.session_id, str(each.turns), last, each.title or each.preview or ""
