"""Commands that run our own helper programs in processes of their own. A helper is a module of ours that is run as a
script and needs the standard library alone.

A frozen program (PyInstaller) has no interpreter to run scripts with: it runs itself, and its `main` runs the helper.
"""

from __future__ import annotations

import os
import sys

from .choices import HELPER_FLAG
from .lazy import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import runpy
else:
    runpy = lazy_module("runpy")

MODULES = frozenset(
    {
        "sidecar.policy.instructions.entry_point",
        "sidecar.providers.local.worker",
        "sidecar.system.supervisor",
        "sidecar.tools.files.regex_worker",
    }
)

_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def is_frozen() -> bool:
    """Whether this program was built into a binary, which has neither an interpreter nor pip."""
    return getattr(sys, "frozen", False)


def helper_command(module: str, *, isolated: bool = True) -> list[str]:
    """Return the command that runs the module; its arguments follow. `isolated`: without site, and whatever the
    environment says; otherwise installed packages can be imported.
    """
    if module not in MODULES:
        raise ValueError(f"{module} is no helper program")
    if is_frozen():
        return [sys.executable, HELPER_FLAG, module]
    options = ["-I", "-S"] if isolated else ["-P"]
    return [sys.executable, *options, os.path.join(_SOURCE, *module.split(".")) + ".py"]


def code_command(code: str) -> list[str]:
    """Return the command that runs a short program of ours, isolated."""
    return (
        [sys.executable, HELPER_FLAG, "-c", code] if is_frozen() else [sys.executable, "-I", "-S", "-c", code]
    )


def run_helper(arguments: list[str]) -> None:
    """Run the helper that a command of a frozen program names."""
    name, *rest = arguments
    if name == "-c":
        code, *rest = rest
        sys.argv = ["-c", *rest]
        exec(compile(code, "<helper>", "exec"), {"__name__": "__main__"})
    elif name in MODULES:
        sys.argv = [name, *rest]
        runpy.run_module(name, run_name="__main__")
    else:
        sys.exit(f"{name} is no helper program")
