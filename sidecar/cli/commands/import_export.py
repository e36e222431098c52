"""`sidecar export` and `sidecar import`: copy a chat out of the database and into it."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from sidecar_client import Sidecar
from sidecar_protocol.messages import ChatExportResult, ChatImportResult

from sidecar.text.plural import counted

from ..client import check_chat_id, find_chat, run
from ..errors import CommandFailed
from ..output import OVERWRITE_HINT, output_path, with_remedy
from ..terminal.progress_line import ProgressLine


def export_chat(options: Namespace) -> int:
    target = output_path(options.output, options.overwrite, "-o")

    async def export(app: Sidecar) -> ChatExportResult:
        chat = await find_chat(app, options.chat)
        return await chat.export(options.format, target, overwrite=options.overwrite)

    done = with_remedy(
        lambda: run(options, export),
        message_too_large="-o FILE writes a chat of any size.",
        already_exists=OVERWRITE_HINT,
    )
    if target is None:
        sys.stdout.write(done.data or "")
    else:
        print(
            f"{counted(done.turns, 'turns')}, {counted(done.bytes, 'bytes')} in {done.path}", file=sys.stderr
        )
    return 0


def import_chat(options: Namespace) -> int:
    source, default = _source(options.file)
    name = options.chat if options.chat is not None else default
    if name is None:
        raise CommandFailed("--chat: give an id for the chat that is read from stdin.")
    check_chat_id(name, "--chat")

    async def load(app: Sidecar) -> ChatImportResult:
        return await app.import_chat(name, append=options.append, **source)

    bar = ProgressLine("importing")
    try:
        done = with_remedy(
            lambda: run(options, load, bar.on_status),
            already_exists="--append adds to it; --chat ID makes another.",
        )
    finally:
        bar.clear()
    print(f"{counted(done.turns, 'turns')} in the chat {name}\n  sidecar chat --chat {name}", file=sys.stderr)
    if done.ignored:
        print(f"  not taken from the file: {', '.join(map(repr, done.ignored))}", file=sys.stderr)
    return 0


def _source(file: str) -> tuple[dict[str, str], str | None]:
    """Return what to import, and the id that its name suggests."""
    if file == "-":
        return {"data": sys.stdin.read()}, None
    path = Path(file).expanduser()
    if not path.is_file():
        raise CommandFailed(f"FILE: there is no file {file}; give one that exists, or - for stdin.")
    return {"path": str(path.absolute())}, path.stem
