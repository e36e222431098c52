"""`sidecar patches`: what tools changed in a chat, as a list or as one patch that `git apply` takes."""

from __future__ import annotations

import base64
import sys
import time
from argparse import Namespace
from pathlib import Path

from sidecar_client import Chat, Sidecar
from sidecar_protocol.messages import PatchesExportResult, PatchInfo

from .client import find_chat, run
from .columns import print_columns
from .errors import Failed
from .excerpts import one_line

PAGE = 200
"""Changes asked for at a time."""


def patches(options: Namespace) -> int:
    if options.output is not None and not options.export:
        raise Failed("-o: it says where --export writes; give that too.")
    return _export(options) if options.export else _list(options)


def _list(options: Namespace) -> int:
    async def read(app: Sidecar) -> list[PatchInfo]:
        return await _all(await find_chat(app, options.chat))

    found = run(options, read)
    if not found:
        print("No tool has changed anything in this chat.")
        return 0
    print_columns(("when", "status", "by", "change", "file"), [_row(each) for each in found], wide=4)
    return 0


def _export(options: Namespace) -> int:
    target = None if options.output is None else str(Path(options.output).expanduser().absolute())

    async def export(app: Sidecar) -> PatchesExportResult:
        chat = await find_chat(app, options.chat)
        params = {"sessionId": chat.session_id} | ({"path": target} if target else {})
        result: PatchesExportResult = await app.call("patches/export", params)
        return result

    done = run(options, export)
    if target is not None:
        print(f"{done.files} files, {done.bytes} bytes in {done.path}", file=sys.stderr)
        return 0
    # As bytes: a patch of files in any encoding must come out as it is.
    sys.stdout.buffer.write(base64.b64decode(done.data) if done.data else (done.patch or "").encode())
    return 0


async def _all(chat: Chat) -> list[PatchInfo]:
    found: list[PatchInfo] = []
    cursor: str | None = None
    while True:
        page = await chat.patches(cursor=cursor, limit=PAGE)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _row(each: PatchInfo) -> tuple[str, str, str, str, str]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.ts / 1000))
    return when, each.status, each.tool_name, each.summary, one_line(each.file_path)
