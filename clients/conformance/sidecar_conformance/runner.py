"""Runs the suite against a command and says what held, one line for each guarantee. Knows no guarantee's meaning."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from .guarantees import SUITE, Frontend

MARKERS = ("slow: long", "sampled(n): n of its cases are enough")


def run(frontend: Frontend, command: str, names: Sequence[str], *, fail_fast: bool = False) -> int:
    """0 if every test passed, else 1."""
    os.environ[frontend.command] = command
    os.environ["SIDECAR_TEST_FRAMING"] = frontend.framing
    chosen = [guarantee for guarantee in frontend.guarantees if guarantee.name in names]
    sys.stdout.write(f"{command}, {frontend.name}:\n")
    failures: list[str] = []
    ran = 0
    for guarantee in chosen:
        report = _Report()
        files = [str(SUITE / frontend.folder / file) for file in guarantee.files]
        began = time.monotonic()
        code = _pytest(files, report, fail_fast=fail_fast)
        # A suite that could not be collected, or in which nothing ran, has shown nothing.
        held = code == pytest.ExitCode.OK and report.passed > 0
        counts = f"{report.passed} passed, {len(report.failures)} failed, {report.skipped} skipped"
        seconds = time.monotonic() - began
        state = "ok  " if held else "FAIL"
        sys.stdout.write(f"{state} {guarantee.name:<11} {guarantee.promise} ({counts}, {seconds:.0f} s)\n")
        sys.stdout.flush()
        ran += report.passed
        if not held:
            failures += report.failures or [f"{guarantee.name}: pytest ended with {code}"]
            if fail_fast:
                break
    for failure in failures:
        sys.stdout.write(f"\n{failure}\n")
    sys.stdout.write(f"\n{ran} passed, {len(failures)} failed\n")
    return 1 if failures else 0


def _pytest(files: list[str], report: _Report, *, fail_fast: bool) -> int:
    options = ["-c", os.devnull, f"--rootdir={SUITE}", "-o", "anyio_mode=auto", "-m", "not slow"]
    options += ["-p", "no:cacheprovider", "-p", "no:terminal"]
    return int(pytest.main([*options, *(["-x"] if fail_fast else []), *files], plugins=[report]))


class _Report:
    """Counts outcomes, and keeps what a failure said."""

    def __init__(self) -> None:
        self.passed = 0
        self.skipped = 0
        self.failures: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        for marker in MARKERS:
            config.addinivalue_line("markers", marker)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            name = report.nodeid.rpartition("::")[2].replace("_", " ")
            self.failures.append(f"{name} ({Path(report.fspath).name}, {report.when})\n{_last_lines(report)}")
        elif report.skipped:
            self.skipped += 1
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failures.append(f"{report.nodeid} was not collected\n{_last_lines(report)}")


_SHOWN_LINES = 12
"""Of what a failure said: the assertion and its values, not the whole traceback."""


def _last_lines(report: pytest.TestReport | pytest.CollectReport) -> str:
    lines = [line for line in str(report.longrepr).splitlines() if line.startswith(("E ", ">"))]
    return "\n".join(f"  {line}" for line in (lines or str(report.longrepr).splitlines())[-_SHOWN_LINES:])
