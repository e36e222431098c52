"""Helper programs are run by the interpreter as scripts, and by a frozen program through itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.system.choices import HELPER_FLAG
from sidecar.system.helper_programs import MODULES, code_command, helper_command

MATCHER = "sidecar.tools.files.regex_worker"


def run(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_helper_is_a_script_of_ours(module: str) -> None:
    assert Path(helper_command(module)[-1]).is_file()


def test_only_helpers_are_run() -> None:
    with pytest.raises(ValueError, match="is no helper program"):
        helper_command("sidecar.cli")
    refused = run([sys.executable, "-m", "sidecar", HELPER_FLAG, "sidecar.cli"])
    assert (refused.returncode, refused.stderr) == (1, "sidecar.cli is no helper program\n")


def test_the_program_runs_a_helper_as_the_interpreter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    as_script = run(helper_command(MATCHER), "no JSON\n")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    frozen = helper_command(MATCHER)
    assert frozen == [sys.executable, HELPER_FLAG, MATCHER]

    through_itself = run([sys.executable, "-m", "sidecar", *frozen[1:]], "no JSON\n")
    assert through_itself.returncode == as_script.returncode
    assert through_itself.stdout == as_script.stdout


def test_the_program_runs_short_code_as_the_interpreter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; print(__name__, sys.stdin.read())"
    as_script = run(code_command(code), "given")
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    through_itself = run([sys.executable, "-m", "sidecar", *code_command(code)[1:]], "given")
    assert through_itself.stdout == as_script.stdout == "__main__ given\n"
