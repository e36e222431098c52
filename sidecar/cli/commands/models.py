"""`sidecar models`: choose, download, list, find and remove local models. Needs no running sidecar."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

from ...providers.local import download, pinned
from ...providers.local.download import ReportBytes
from ...providers.local.files import downloaded_models, model_path
from ...providers.local.package_index import find_index_sources
from ...providers.local.pinned import PinnedModel
from ...settings import MEMORY, SettingsError, load
from ...settings.files import default_data_dir
from ...system.distribution import install_command
from ...system.lazy import lazy_module
from ..errors import CommandFailed
from ..terminal.markdown_blocks import printable

if TYPE_CHECKING:
    import textwrap

    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import text as rich_text

    from ...providers.local import child, speed, trial
else:
    textwrap = lazy_module("textwrap")
    rich_console = lazy_module("rich.console")
    rich_progress = lazy_module("rich.progress")
    rich_text = lazy_module("rich.text")
    child = lazy_module("sidecar.providers.local.child")
    speed = lazy_module("sidecar.providers.local.speed")
    trial = lazy_module("sidecar.providers.local.trial")

REPORT_S = 5.0
"""How often a line reports the progress without a terminal."""

DEFAULT_CHOICE = 1
"""The smallest model: it is there within a minute, and shows whether everything works."""


def fetch(options: Namespace) -> int:
    return _fetch(_pin(options.name), options, options.source)


def choose(options: Namespace) -> int:
    """Let the user choose a model to download; do nothing when one is there."""
    if downloaded_models(models_dir(options)):
        return 0
    pins = list(pinned.pinned_models().values())
    print("No model is chosen and none is on this machine. These run here, without a key:\n", file=sys.stderr)
    for number, pin in enumerate(pins, 1):
        lines = [f"Good for {pin.good_for}."]
        _print_block(sys.stderr, f"{number}  {pin.name}", pin.bytes, _speed_here(pin, options), lines)
    return _fetch(pins[_ask_number(len(pins)) - 1], options, None)


def list_models(options: Namespace) -> int:
    folder = models_dir(options)
    there, pins = downloaded_models(folder), pinned.pinned_models()
    for name in [*(name for name in pins if name in there), *(name for name in there if name not in pins)]:
        path, pin = model_path(folder, name), pins.get(name)
        good_for = [f"Good for {pin.good_for}."] if pin else []
        rate = _measured(path) or (_speed_here(pin, options) if pin else "")
        _print_block(sys.stdout, f"local:{name}", _bytes(path), rate, [*good_for, path])
    for pin in pins.values():
        if pin.name not in there:
            lines = [f"Good for {pin.good_for}.", f"Not here yet: sidecar models fetch {pin.name}"]
            _print_block(sys.stdout, f"local:{pin.name}", pin.bytes, _speed_here(pin, options), lines)
    return 0


def show_path(options: Namespace) -> int:
    print(_existing(options))
    return 0


def remove(options: Namespace) -> int:
    """Remove a model, also the rest of an interrupted download."""
    target = _target(options.name, options)
    found = [target] if os.path.exists(target) else []
    found += download.left_behind(target)
    if not found:
        _existing(options)
    for path in [*found, *filter(os.path.exists, [speed.speed_path(target)])]:
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


def _fetch(pin: PinnedModel, options: Namespace, source: str | None) -> int:
    target = _target(pin.name, options)
    try:
        if source is not None:
            download.install_from(pin, os.path.expanduser(source), target)
        elif download.is_installed(pin, target):
            print(f"{pin.name} is there already: {target}")
            return 0
        else:
            with _progress(pin) as progress:
                download.download_model(pin, target, find_index_sources(), progress)
    except download.DownloadFailed as error:
        raise CommandFailed(str(error), error.code) from error
    print(f"{pin.name} is in {target}\n  sidecar chat --model local:{pin.name}")
    print(pin.note, file=sys.stderr)
    if find_spec("xllamacpp") is None:
        print(f"To run it:  {install_command('local')}", file=sys.stderr)
    elif rate := trial.measure(target):
        print(f"It writes {rate:.0f} tokens a second here.", file=sys.stderr)
    return 0


def _ask_number(count: int) -> int:
    """Ask for a number from 1 to `count`; the default without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return DEFAULT_CHOICE
    while True:
        print(f"Which one? [{DEFAULT_CHOICE}] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer:
            raise CommandFailed("No model was chosen.", 1)
        if not answer.strip():
            return DEFAULT_CHOICE
        if answer.strip().isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        print(f"A number from 1 to {count}, please, or Return for {DEFAULT_CHOICE}.", file=sys.stderr)


def _print_block(file: TextIO, name: str, size: int, rate: str, lines: Sequence[str]) -> None:
    """Print a model: its name, size and speed, and what else there is to say, indented."""
    console = rich_console.Console(file=file, highlight=False)
    head = f"{name:<26}{size / 1e6:>6,.0f} MB   {rate}"
    console.print(rich_text.Text(printable(head.rstrip()), style="bold"), soft_wrap=not console.is_terminal)
    for line in lines:
        # A path is not cut, so that it can be copied.
        wrapped = textwrap.wrap(
            line, max(20, console.width - 2), break_long_words=False, break_on_hyphens=False
        )
        for part in wrapped if console.is_terminal else [line]:
            console.print(rich_text.Text(f"  {printable(part)}"), soft_wrap=True)


def _measured(path: str) -> str:
    rate = speed.measured_rate(path)
    return f"{rate:.0f} tokens/s" if rate else ""


def _speed_here(pin: PinnedModel, options: Namespace) -> str:
    """What the model would write here; by what was measured of another one, if any was."""
    folder = models_dir(options)
    known = [
        (_bytes(path), rate)
        for path in (model_path(folder, name) for name in downloaded_models(folder))
        if (rate := speed.measured_rate(path))
    ]
    size, rate = max(known, default=(0, 0.0))
    about = rate * size / pin.bytes if rate else speed.estimate(pin.bytes, child.threads())
    return f"about {about:.0f} tokens/s"


def _pin(name: str) -> PinnedModel:
    known = pinned.pinned_models()
    pin = known.get(name.removeprefix("local:"))
    if pin is None:
        raise CommandFailed(f"NAME: there is no model {name!r} to fetch; there is {', '.join(known)}.")
    return pin


def _target(name: str, options: Namespace) -> str:
    folder = os.path.abspath(models_dir(options))
    if not name or os.path.basename(name) != name:
        raise CommandFailed("NAME: give a model's name as `sidecar models list` shows it.")
    return os.path.join(folder, f"{name.removeprefix('local:')}.gguf")


def _existing(options: Namespace) -> str:
    target = _target(options.name, options)
    if not os.path.isfile(target):
        raise CommandFailed(
            f"There is no model {options.name!r}.\n  `sidecar models list` shows those that there are.", 1
        )
    return target


def _bytes(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


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
        task = bar.add_task(pin.name, total=pin.bytes)
        yield lambda done, total: bar.update(task, completed=done)


def _lines(pin: PinnedModel) -> ReportBytes:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > REPORT_S:
            last = time.monotonic()
            print(f"{pin.name}: {done / 1e6:.0f} of {total / 1e6:.0f} MB", file=sys.stderr, flush=True)

    return tell
