"""`sidecar doctor`: what the sidecar found out about its installation, for a human. Checks nothing itself."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from rich.console import Console
from rich.text import Text
from sidecar_client import Sidecar
from sidecar_protocol.messages import DoctorCheck, DoctorReportResult, DoctorRunResult

from .client import run

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def check(options: Namespace) -> int:
    if options.repair:
        from .keeping import repair

        repair(options)
    path = None if options.report is None else str(Path(options.report).expanduser().absolute())
    found, report = run(options, lambda app: _ask(app, path))
    console = Console(soft_wrap=True, highlight=False)
    for each in found.checks:
        _print_check(console, each)
    if report is not None:
        console.print(f"\nThe report is in {report.path}: look through it before you send it.")
    return 1 if found.status == "fail" else 0


async def _ask(app: Sidecar, path: str | None) -> tuple[DoctorRunResult, DoctorReportResult | None]:
    found = await app.doctor()
    if path is None:
        return found, None
    return found, await app.call("doctor/report", {"path": path})


def _print_check(console: Console, each: DoctorCheck) -> None:
    line = Text(f"{each.status:<5}", style=_COLOURS[each.status])
    console.print(
        line.append(f"{each.name:<14} ", style="bold").append(each.message, style="default not bold")
    )
    if each.action is not None and each.status != "ok":
        console.print(Text(f"{'':<20}{each.action}", style="dim"))
