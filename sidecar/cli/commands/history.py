"""`sidecar import-from` and `sidecar export-to`: bring the chats of other programs along, and take one back."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import uuid
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import Any

from sidecar_client import Chat, Sidecar
from sidecar_protocol.messages import (
    ChatExportResult,
    HistoryChat,
    HistoryImportResult,
    HistoryProblem,
    Status,
)

from sidecar.text.plural import counted

from ..client import find_chat, run
from ..errors import CommandFailed
from ..output import OVERWRITE_HINT, with_remedy
from ..terminal.columns import print_columns
from ..terminal.markdown_blocks import printable
from ..terminal.progress_line import ProgressLine

SHOWN_CHATS = 20
"""Of those that were imported, named on the terminal; a dry run names all."""

SHOWN_PROBLEMS = 20
"""Named on the terminal; the others are counted."""

_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGO = re.compile(r"(\d{1,5})([dwmy])")
_DAYS = {"d": 1, "w": 7, "m": 31, "y": 366}


def import_from(options: Namespace) -> int:
    since = _since(options.since)
    path = _existing(options.path)
    project = None if options.project is None else str(Path(options.project).expanduser().absolute())
    bar = ProgressLine("importing")
    imported = 0

    def on_status(status: Status) -> None:
        nonlocal imported
        if status.type == "progress":
            imported = status.data.get("chats") or imported
        bar.on_status(status)

    async def bring(app: Sidecar) -> HistoryImportResult:
        return await app.import_history(
            options.platform, path=path, since=since, project_path=project, dry_run=options.dry_run
        )

    try:
        done = run(options, bring, on_status)
    except KeyboardInterrupt:
        bar.clear()
        print(f"Stopped. At least {counted(imported, 'chats')} were imported and stay;", file=sys.stderr)
        print("the same command brings the others.", file=sys.stderr)
        raise
    finally:
        bar.clear()
    _show(options, done)
    return 0


def export_to(options: Namespace) -> int:
    """Write a chat where the program finds it, or as Markdown for one that resumes no session from elsewhere."""
    session = str(uuid.uuid4())
    resumes = options.platform in ("claude-code", "codex")

    async def export(app: Sidecar) -> tuple[ChatExportResult, Chat]:
        chat = await find_chat(app, options.chat)
        target = _target(options, chat, session)
        Path(target).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        format: Any = options.platform if resumes else "markdown"
        return await chat.export(format, target, overwrite=options.overwrite), chat

    done, chat = with_remedy(lambda: run(options, export), already_exists=OVERWRITE_HINT)
    print(f"{counted(done.turns, 'turns')} in {done.path}", file=sys.stderr)
    found = _SESSION.search(done.path or "")
    if resumes and found:
        folder = shlex.quote(chat.project_path or "/")
        command = "claude --resume" if options.platform == "claude-code" else "codex resume"
        print(f"  cd {folder} && {command} {found[0]}", file=sys.stderr)
    elif not resumes:
        print(
            f"  {options.platform} resumes no session of another program: this is Markdown", file=sys.stderr
        )
    return 0


def _target(options: Namespace, chat: Chat, session: str) -> str:
    if options.path is not None:
        return str(Path(options.path).expanduser().absolute())
    if options.platform == "claude-code":
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        folder = re.sub(r"[^A-Za-z0-9]", "-", chat.project_path or "/")
        return str(home / "projects" / folder / f"{session}.jsonl")
    if options.platform == "codex":
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        now = datetime.now()
        name = f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        return str(home / "sessions" / f"{now:%Y/%m/%d}" / name)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", options.chat)[:100]
    return str(Path(f"{name}.md").absolute())


def _show(options: Namespace, done: HistoryImportResult) -> None:
    newest = sorted(done.chats, key=lambda chat: chat.last_activity, reverse=True)
    shown = newest if options.dry_run else newest[: SHOWN_CHATS if sys.stdout.isatty() else 0]
    if shown:
        print_columns(("chat", "", "turns", "last", "title"), [_row(chat) for chat in shown], wide=4)
    if 0 < len(shown) < len(newest):
        print(f"  and {counted(len(newest) - len(shown), 'more chats')}: sidecar chats", file=sys.stderr)
    verb = "would be imported" if done.dry_run else "imported"
    parts = [f"{counted(done.new, 'new chats')} {verb}", f"{done.grown} with more turns"]
    parts += [f"{done.unchanged} unchanged"]
    parts += [f"{done.skipped} skipped"] if done.skipped else []
    parts += [f"{done.deleted} deleted here before"] if done.deleted else []
    print(f"{', '.join(parts)}: {counted(done.turns, 'turns')}, {done.messages} items", file=sys.stderr)
    for problem in done.problems[:SHOWN_PROBLEMS]:
        print(f"  not read: {_place(problem)}: {printable(problem.message)}", file=sys.stderr)
    left = done.problem_count - min(len(done.problems), SHOWN_PROBLEMS)
    if left > 0:
        print(f"  and {counted(left, 'more problems')}", file=sys.stderr)
    if done.new and not done.dry_run:
        first = next((chat for chat in newest if chat.status == "new"), None)
        print(f"  sidecar chat --chat {first.chat_id}" if first else "  sidecar chats", file=sys.stderr)


def _place(problem: HistoryProblem) -> str:
    file = printable(problem.file)
    return file if problem.line is None else f"{file}:{problem.line}"


def _row(chat: HistoryChat) -> tuple[str, str, str, str, str]:
    last = time.strftime("%Y-%m-%d %H:%M", time.localtime(chat.last_activity / 1000))
    return chat.chat_id, chat.status, str(chat.turns), last, chat.title or ""


def _since(given: str | None) -> int | None:
    """Milliseconds of a date, or of so long ago."""
    if given is None:
        return None
    if found := _AGO.fullmatch(given):
        return int((time.time() - int(found[1]) * _DAYS[found[2]] * 86400) * 1000)
    try:
        return int(datetime.fromisoformat(given).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise CommandFailed(
            f"--since: {given!r} is no date such as 2026-10-31, and no age such as 30d."
        ) from None


def _existing(given: str | None) -> str | None:
    if given is None:
        return None
    path = Path(given).expanduser()
    if not path.exists():
        raise CommandFailed(f"PATH: there is no {given}; give a file or folder that exists.")
    return str(path.absolute())
