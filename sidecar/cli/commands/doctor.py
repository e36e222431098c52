"""`sidecar doctor`: print the sidecar's checks of its installation. Checks nothing itself."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text
from sidecar_client import Sidecar
from sidecar_protocol.messages import DoctorCheck, DoctorReportResult, DoctorRunResult

from sidecar.system.lazy import lazy_module

from ..client import run
from ..output import OVERWRITE_HINT, output_path, with_remedy

if TYPE_CHECKING:
    from . import database
else:
    database = lazy_module("sidecar.cli.commands.database")

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def check(options: Namespace) -> int:
    path = output_path(options.report, options.overwrite, "--report")
    if options.repair:
        database.repair(options)
    found, report = with_remedy(
        lambda: run(options, lambda app: _ask(app, path, options.overwrite)), already_exists=OVERWRITE_HINT
    )
    console = Console(soft_wrap=True, highlight=False)
    for each in found.checks:
        _print_check(console, each)
    if report is not None:
        console.print(f"\nThe report is in {report.path}: look through it before you send it.")
    return 1 if found.status == "fail" else 0


async def _ask(
    app: Sidecar, path: str | None, overwrite: bool
) -> tuple[DoctorRunResult, DoctorReportResult | None]:
    found = await app.doctor()
    if path is None:
        return found, None
    return found, await app.call("doctor/report", {"path": path, "overwrite": overwrite})


def _print_check(console: Console, each: DoctorCheck) -> None:
    line = Text(f"{each.status:<5}", style=_COLOURS[each.status])
    console.print(
        line.append(f"{each.name:<14} ", style="bold").append(each.message, style="default not bold")
    )
    if each.action is not None and each.status != "ok":
        console.print(Text(f"{'':<20}{each.action}", style="dim"))
