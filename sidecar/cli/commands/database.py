"""`sidecar backup`, `restore`, `verify` and `doctor --repair`: the whole database, without a running sidecar."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from sidecar import settings as configuration
from sidecar.model.failures import Failure
from sidecar.settings import MEMORY, SettingsError
from sidecar.settings.installation import identify
from sidecar.store import maintenance
from sidecar.store.engine.opening import FILE_NAME
from sidecar.text.plural import counted

from ..errors import CommandFailed

T = TypeVar("T")

SHOWN = 20
"""Problems that are listed; the rest are counted."""

_PARTS = {"file": "pages", "events": "events", "messages": "messages", "blobs": "blobs", "indexes": "indexes"}


def backup(options: Namespace) -> int:
    path, target = _database(options), os.path.abspath(os.path.expanduser(options.file))
    with _progress_bar() as bar:
        task = bar.add_task("copying", total=None)
        size = _with_remedies(
            lambda: maintenance.backup(
                path, target, lambda done, total: bar.update(task, completed=done, total=total)
            )
        )
    print(f"{size} bytes in {target}", file=sys.stderr)
    return 0


def restore(options: Namespace) -> int:
    path = _database(options)
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = os.path.abspath(os.path.expanduser(options.file))
    done = _with_remedies(lambda: maintenance.restore(source, path, identify().id, trust=options.trust))
    print(f"{path} is as the backup was", file=sys.stderr)
    if done.aside:
        print(f"  what was there before is kept in {done.aside}", file=sys.stderr)
    if done.taken:
        print("  another installation wrote the backup; this was not taken from it:", file=sys.stderr)
        for line in done.taken.lines():
            print(f"    {line}", file=sys.stderr)
        print("  `sidecar restore --trust` takes everything, if you know who wrote it", file=sys.stderr)
    return 0


def verify(options: Namespace) -> int:
    path = os.path.abspath(os.path.expanduser(options.file)) if options.file else _database(options)
    with _progress_bar() as bar:
        tasks: dict[str, TaskID] = {}

        def progress(part: str, done: int, total: int) -> None:
            if part not in tasks:
                tasks[part] = bar.add_task(_PARTS[part], total=total)
            bar.update(tasks[part], completed=done, total=total)

        counts, found = _with_remedies(lambda: maintenance.verify(path, progress))
    for problem in found[:SHOWN]:
        print(problem.message)
    if len(found) > SHOWN:
        print(f"… and {len(found) - SHOWN} more")
    print(
        f"{counted(len(found), 'problems') if found else 'sound'}: {counted(counts.chats, 'chats')},"
        f" {counted(counts.events, 'events')}, {counted(counts.messages, 'messages')},"
        f" {counted(counts.blobs, 'blobs')}, {counted(counts.indexes, 'full-text indexes')} in {path}"
    )
    if counts.without_checksum:
        print(f"  from before there were checksums: {counted(counts.without_checksum, 'rows')}")
    if found:
        print("  `sidecar doctor --repair` saves what can be read", file=sys.stderr)
    return 1 if found else 0


def repair(options: Namespace) -> int:
    """Run `sidecar doctor --repair`."""
    path = _database(options)
    if not os.path.exists(path):
        raise CommandFailed(f"There is no database {path}.", 1)
    done = _with_remedies(lambda: maintenance.repair(path))
    if done is None:
        print(f"{path} is sound")
        return 0
    print(
        f"saved: {counted(done.chats, 'chats')}, {counted(done.events, 'events')}; lost: {counted(done.lost, 'events')}"
    )
    print(f"  the damaged database is kept in {done.damaged}")
    return 0


def _with_remedies(action: Callable[[], T]) -> T:
    try:
        return action()
    except Failure as failure:
        raise CommandFailed(failure.message, 1) from failure


def _database(options: Namespace) -> str:
    """Return the database that the command line, the environment or the settings name."""
    given = getattr(options, "data_dir", None)
    try:
        settings = configuration.load(
            config_file=getattr(options, "config", None),
            project=None,
            environ=os.environ,
            trusted=False,
            command_line={"store.data_dir": os.path.expanduser(given) if given else None},
        )
    except SettingsError as error:
        raise CommandFailed(str(error), 1) from error
    folder = settings.store.data_dir
    if folder == MEMORY:
        raise CommandFailed("--data-dir: a database in memory ends with its process; name a folder.")
    return os.path.join(os.path.abspath(folder), FILE_NAME)


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """Show a progress bar on a terminal; elsewhere nothing."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<10}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield bar
