"""`sidecar models`: models on this machine are fetched, listed, found and removed. Needs no running sidecar."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ..providers.local.files import fetched, path_of
from ..settings import MEMORY, SettingsError, load
from ..settings.files import default_data_dir
from . import model_fetch
from .columns import print_columns
from .errors import Failed
from .model_fetch import PINS, Pin, Progress
from .model_index import configured

REPORT_S = 5.0
"""How often a line tells the progress where there is no terminal."""


def fetch(options: Namespace) -> int:
    pin, target = _pin(options.name), _target(options)
    if options.source is not None:
        model_fetch.take(pin, os.path.expanduser(options.source), target)
    elif model_fetch.is_there(pin, target):
        print(f"{pin.name} is there already: {target}")
        return 0
    else:
        with _progress(pin) as progress:
            model_fetch.fetch(pin, target, configured(), progress)
    print(f"{pin.name} is in {target}\n  sidecar chat --model local:{pin.name}")
    print(pin.note, file=sys.stderr)
    if find_spec("xllamacpp") is None:
        print("To run it:  pip install 'sidecar[local]'", file=sys.stderr)
    return 0


def list_models(options: Namespace) -> int:
    folder = models_dir(options)
    there = fetched(folder)
    rows = [(f"local:{name}", _megabytes(path_of(folder, name)), path_of(folder, name)) for name in there]
    rows += [(f"local:{name}", "-", f"sidecar models fetch {name}") for name in PINS if name not in there]
    print_columns(("model", "size", "where"), rows, wide=2)
    return 0


def show_path(options: Namespace) -> int:
    print(_existing(options))
    return 0


def remove(options: Namespace) -> int:
    """Also what is left of a download that was broken off."""
    target = _target(options)
    left = [path for path in (target, model_fetch.part_of(target)) if os.path.exists(path)]
    if not left:
        _existing(options)
    for path in left:
        os.unlink(path)
        print(f"removed {path}")
    return 0


def models_dir(options: Namespace) -> str:
    """Where models lie: in the data folder, also when the chats are kept in memory only."""
    try:
        settings = load(
            config_file=getattr(options, "config", None),
            environ=os.environ,
            command_line={"store.data_dir": getattr(options, "data_dir", None)},
        )
    except SettingsError as error:
        raise Failed(str(error)) from error
    data_dir = settings.store.data_dir
    return os.path.join(os.path.expanduser(default_data_dir() if data_dir == MEMORY else data_dir), "models")


def _pin(name: str) -> Pin:
    pin = PINS.get(name.removeprefix("local:"))
    if pin is None:
        raise Failed(f"NAME: there is no model {name!r} to fetch; there is {', '.join(PINS)}.")
    return pin


def _target(options: Namespace) -> str:
    folder = os.path.abspath(models_dir(options))
    if not options.name or os.path.basename(options.name) != options.name:
        raise Failed("NAME: give a model's name as `sidecar models list` shows it.")
    return os.path.join(folder, f"{options.name.removeprefix('local:')}.gguf")


def _existing(options: Namespace) -> str:
    target = _target(options)
    if not os.path.isfile(target):
        raise Failed(
            f"There is no model {options.name!r}.\n  `sidecar models list` shows those that there are.", 1
        )
    return target


def _megabytes(path: str) -> str:
    try:
        return f"{os.path.getsize(path) / 1e6:.0f} MB"
    except OSError:
        return "-"


@contextmanager
def _progress(pin: Pin) -> Iterator[Progress]:
    """A bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _lines(pin)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(pin.wheel, total=pin.wheel_bytes)
        yield lambda done, total: bar.update(task, completed=done)


def _lines(pin: Pin) -> Progress:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > REPORT_S:
            last = time.monotonic()
            print(f"{pin.wheel}: {done / 1e6:.0f} of {total / 1e6:.0f} MB", file=sys.stderr, flush=True)

    return tell
