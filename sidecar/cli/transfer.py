"""`sidecar export` and `sidecar import`: a chat out of the database and into it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sidecar_client import RpcError, Sidecar
from sidecar_protocol.messages import ChatExportResult, ChatImportResult

from .client import check_chat_id, find_chat, run
from .errors import Failed

T = TypeVar("T")


def export_chat(options: Namespace) -> int:
    target = None if options.output is None else str(Path(options.output).expanduser().absolute())

    async def export(app: Sidecar) -> ChatExportResult:
        chat = await find_chat(app, options.chat)
        return await chat.export(options.format, target)

    done = _with_remedy(
        lambda: run(options, export), "message_too_large", "-o FILE writes a chat of any size."
    )
    if target is None:
        sys.stdout.write(done.data or "")
    else:
        print(f"{done.turns} turns, {done.bytes} bytes in {done.path}", file=sys.stderr)
    return 0


def import_chat(options: Namespace) -> int:
    source, default = _source(options.file)
    name = options.chat if options.chat is not None else default
    if name is None:
        raise Failed("--chat: give an id for the chat that is read from stdin.")
    check_chat_id(name, "--chat")

    async def load(app: Sidecar) -> ChatImportResult:
        return await app.import_chat(name, append=options.append, **source)

    done = _with_remedy(
        lambda: run(options, load), "already_exists", "--append adds to it; --chat ID makes another."
    )
    print(f"{done.turns} turns in the chat {name}\n  sidecar chat --chat {name}", file=sys.stderr)
    return 0


def _source(file: str) -> tuple[dict[str, str], str | None]:
    """What to import, and the id that its name suggests."""
    if file == "-":
        return {"data": sys.stdin.read()}, None
    path = Path(file).expanduser()
    if not path.is_file():
        raise Failed(f"FILE: there is no file {file}; give one that exists, or - for stdin.")
    return {"path": str(path.absolute())}, path.stem


def _with_remedy(action: Callable[[], T], name: str, remedy: str) -> T:
    try:
        return action()
    except RpcError as error:
        if error.name == name:
            raise Failed(f"{error.message}\n  {remedy}", 1) from None
        raise
