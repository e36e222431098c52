"""What `make dist` tries a binary with holds for the program as it is, and finds what is wrong with another."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from release import smoke


def broken(folder: Path, change: str) -> list[str]:
    """A program like ours, but for a change that is made before it starts."""
    script = folder / "broken.py"
    script.write_text(f"import sys\nfrom sidecar.__main__ import main\n{change}\nmain()\n", "utf-8")
    return [sys.executable, str(script)]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_the_program_passes() -> None:
    smoke.check([sys.executable, "-m", "sidecar"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("import os, tempfile; tempfile.mkdtemp()", "nothing is left in the temporary folder"),
        (
            "sys.argv[3:4] = [__import__('tempfile').mkdtemp(dir='/tmp')]",
            "the chat is new|both turns are there",
        ),
        ("import subprocess; subprocess.Popen(['sleep', '30'])", "no process is left"),
        ("import os; os.environ['HOME']", "it ended with code 1"),
        ("from sidecar.system import helper_programs; helper_programs._SOURCE = '/nowhere'", "tools work"),
    ],
)
def test_a_broken_program_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, found: str
) -> None:
    monkeypatch.setattr(smoke, "END_S", 2.0)
    with pytest.raises(smoke.SmokeTestFailed, match=found):
        smoke.check(broken(tmp_path, change))
