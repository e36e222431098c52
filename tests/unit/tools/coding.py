"""Code in every language that a machine may have, and a tool context to run it with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest

from sidecar.system import sandbox
from sidecar.tools.base import Confinement, ToolOutcome
from sidecar.tools.shell.run_code import RunCode
from sidecar.tools.shell.runner import Bounds, Runner
from sidecar.tools.shell.runtimes import RuntimeBroken, first_working, installed_runtimes
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out

Mode = Literal["auto", "require", "off"]

OFF = Confinement(False, 'the settings switch it off (sandbox = "off")', "switched_off")

HELLO = {
    "python": "import os\nprint('hello', 6 * 7, os.getcwd())",
    "javascript": "const os = require('os')\nconsole.log('hello', 6 * 7, process.cwd())",
    "typescript": "const n: number = 6 * 7\nconsole.log('hello', n, process.cwd())",
    "shell": 'echo "hello $((6 * 7)) $PWD"',
    "ruby": 'puts "hello #{6 * 7} #{Dir.pwd}"',
    "go": 'package main\nimport ("fmt"; "os")\nfunc main() { d, _ := os.Getwd(); fmt.Println("hello", 6*7, d) }',
    "rust": 'fn main() { println!("hello {} {}", 6 * 7, std::env::current_dir().unwrap().display()); }',
    "php": 'echo "hello ", 6 * 7, " ", getcwd(), "\\n";',
    "perl": 'use Cwd; print "hello ", 6 * 7, " ", getcwd(), "\\n";',
    "r": 'cat("hello", 6 * 7, getwd(), "\\n")',
    "elixir": 'IO.puts("hello #{6 * 7} #{File.cwd!()}")',
}
"""Prints three words in each: the last is the folder it runs in."""


def hands_in(folder: Path, call_key: str = "s1.e1.i1") -> FolderContext:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return FolderContext(Workspace(str(project)), call_key=call_key)


def needs(language: str) -> None:
    try:
        first_working(installed_runtimes()[language])
    except (KeyError, RuntimeBroken):
        pytest.skip(f"{language} is not installed here")


def needs_bubblewrap() -> None:
    if sandbox.detect() is None:
        pytest.skip("bubblewrap does not work here")


def tool(mode: Mode = "off", **around: Any) -> RunCode:
    return RunCode(Runner(mode, os.environ, Bounds(**around)), installed_runtimes())


async def ran(
    context: FolderContext, language: str, code: str, mode: Mode = "off", **input: Any
) -> ToolOutcome:
    return await carry_out(tool(mode), {"language": language, "code": code, **input}, context)
