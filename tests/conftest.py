"""Fixtures of the black boxes: a spawner of sidecars in a folder of the test's own, and one that is ready."""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("SIDECAR_HYPOTHESIS_PROFILE", "fixed"))
"""`fixed` draws the same cases in each run, so that a run fails only by what was changed; `make test-random` draws
others. Neither has a deadline: a busy machine is no failure."""

EXAMPLES = int(os.environ.get("SIDECAR_HYPOTHESIS_TIMES", "1"))
"""So many times the cases of each property test."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `sampled` leaves to `make test-slow`, and put files with slow tests first.

    A slow one that is begun last leaves the other workers with nothing to do.
    """
    _mark_what_is_not_sampled(items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    if EXAMPLES > 1:
        _draw_more(items)


def pytest_xdist_auto_num_workers() -> int:
    """Many tests wait for processes: one worker more than there are cores keeps the cores busy."""
    named = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(named) if named else (os.cpu_count() or 1) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the names of what failed to the file that SIDECAR_FAILED_TESTS names, one per line, for `.ci/run`."""
    path = os.environ.get("SIDECAR_FAILED_TESTS")
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if path and reporter and not hasattr(session.config, "workerinput"):
        failed = [report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, [])]
        Path(path).write_text("".join(f"{name}\n" for name in dict.fromkeys(failed)))


def pytest_collectstart() -> None:
    """What is collected stays to the end: looking for garbage among it takes a third of the time of collecting."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor is it looked for later, which would take a tenth of the workers' time."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawner]:
    """Call it to spawn a sidecar. At the end all are gone, and what they said kept the rules."""
    spawner = Spawner(tmp_path)
    yield spawner
    spawner.settle()


@pytest.fixture
def sidecar(spawn: Spawner) -> Sidecar:
    """An initialized sidecar with the `echo:` model."""
    return spawn()


def _mark_what_is_not_sampled(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `sampled(n)`, n that are spread evenly stay quick and the others become slow.

    Where the spread begins depends on the test's name: tests over the same cases choose different ones.
    """
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for name, same in cases.items():
        marker = same[0].get_closest_marker("sampled")
        assert marker is not None
        quick = min(marker.args[0], len(same))
        start = zlib.crc32(name.encode())
        kept = {(start + number * len(same) // quick) % len(same) for number in range(quick)}
        for number, item in enumerate(same):
            if number not in kept:
                item.add_marker("slow")


def _draw_more(items: list[pytest.Item]) -> None:
    """Raise the number of cases of each property test, also where a test chose its own."""
    raised = set()
    for item in items:
        test = getattr(item, "obj", None)
        function: Any = getattr(test, "__func__", test)
        if not hasattr(function, "hypothesis") or function in raised:
            continue
        raised.add(function)
        default: Any = hypothesis.settings.default
        chosen = getattr(function, "_hypothesis_internal_use_settings", None) or default
        more = hypothesis.settings(chosen, max_examples=chosen.max_examples * EXAMPLES)
        function._hypothesis_internal_use_settings = more
