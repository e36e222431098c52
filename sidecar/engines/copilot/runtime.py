"""Where the Copilot SDK and its runtime are installed, and what to do when one is missing. Starts nothing."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
from collections.abc import Mapping

from ...model.failures import Failure
from ...system.distribution import install_command
from ...system.programs import find_program

RUNTIME_VARIABLE = "COPILOT_CLI_PATH"
"""The SDK's own variable for the path of the runtime."""

INSTALL_RUNTIME = "npm install -g @github/copilot"

_NAMES = ("copilot-runtime", "copilot")
_PREBUILT = "lib/node_modules/@github/copilot-sdk-*/prebuilds/*/copilot-runtime"


def has_sdk() -> bool:
    """Whether the SDK can be imported; importing it takes a second."""
    return importlib.util.find_spec("copilot") is not None


def find_runtime(environ: Mapping[str, str], named: str | None = None) -> str | None:
    """The path of the runtime: the one that is named, else of the environment, else an installed one. Blocking."""
    for path in (named, environ.get(RUNTIME_VARIABLE)):
        if path:
            return path if os.access(path, os.X_OK) else None
    search = environ.get("PATH", os.defpath)
    for name in _NAMES:
        if found := find_program(name, search):
            return found
    prefixes = {os.path.dirname(entry) for entry in search.split(os.pathsep) if os.path.isabs(entry)}
    return next(
        (path for prefix in sorted(prefixes) for path in glob.glob(os.path.join(prefix, _PREBUILT))), None
    )


def missing(sdk: bool, runtime: str | None) -> Failure | None:
    """The one error for what is not installed, with all commands that are needed; None when nothing is missing."""
    commands = [] if sdk else [install_command("copilot")]
    commands += [] if runtime else [INSTALL_RUNTIME]
    if not commands:
        return None
    what = " and ".join([*([] if sdk else ["its SDK"]), *([] if runtime else ["its runtime"])])
    how = " && ".join(commands)
    return Failure(
        "precondition_failed",
        f"GitHub Copilot is not installed: {what} cannot be found. Install it: {how}",
        reason="agent_missing",
        params={"engine": "copilot", "python": sys.executable},
        hint=how,
    )
