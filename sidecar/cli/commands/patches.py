"""`sidecar patches`: show what tools changed in a chat, as a list or as one patch for `git apply`."""

from __future__ import annotations

import base64
import sys
import time
from argparse import Namespace

from sidecar_client import Chat, Sidecar
from sidecar_protocol.messages import PatchesExportResult, PatchInfo

from sidecar.text.plural import counted

from ..client import find_chat, run
from ..errors import CommandFailed
from ..output import OVERWRITE_HINT, output_path, with_remedy
from ..terminal.columns import print_columns
from ..terminal.safe_text import one_line

PAGE = 200
"""Changes per request."""


def patches(options: Namespace) -> int:
    if options.output is not None and not options.export:
        raise CommandFailed("-o: it says where --export writes; give that too.")
    if options.overwrite and not options.export:
        raise CommandFailed("--overwrite: it replaces the file that --export -o names; give those too.")
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
    target = output_path(options.output, options.overwrite, "-o")

    async def export(app: Sidecar) -> PatchesExportResult:
        chat = await find_chat(app, options.chat)
        written = {"path": target, "overwrite": options.overwrite} if target else {}
        params = {"sessionId": chat.session_id, **written}
        result: PatchesExportResult = await app.call("patches/export", params)
        return result

    done = with_remedy(lambda: run(options, export), already_exists=OVERWRITE_HINT)
    if target is not None:
        print(
            f"{counted(done.files, 'files')}, {counted(done.bytes, 'bytes')} in {done.path}", file=sys.stderr
        )
        return 0
    # As bytes: a patch of files in any encoding must not be altered.
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
