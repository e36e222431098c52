"""`run_code` from the call to the outcome: every language that is here, what comes back, what is refused."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sidecar.system import scratch
from sidecar.tools import runtimes
from sidecar.tools.base import Need, Wrong
from sidecar.tools.run_code import MAX_CODE, RunCode
from sidecar.tools.runner import Runner
from tests.tools.coding import HELLO, Mode, hands_in, needs, needs_bubblewrap, ran, tool
from tests.tools.hands import OpenHands


@pytest.fixture
def hands(tmp_path: Path) -> OpenHands:
    return hands_in(tmp_path, call_key=f"{tmp_path.name}.e1.i1")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's place for temporary files, where nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(params=["require", "off"])
def mode(request: pytest.FixtureRequest) -> Mode:
    if request.param == "require":
        needs_bubblewrap()
    return "require" if request.param == "require" else "off"


@pytest.mark.parametrize("language", HELLO)
async def test_what_is_printed_comes_back_from_the_project(
    hands: OpenHands, language: str, mode: Mode, tmp_path: Path, temporary: Path
) -> None:
    needs(language)
    outcome = await ran(hands, language, HELLO[language], mode)
    assert outcome.text.splitlines()[0].split() == ["hello", "42", str(tmp_path / "project")]
    assert (outcome.exit_code, outcome.failed, os.listdir(temporary)) == (0, False, [])
    assert "".join(hands.shown).split()[:2] == ["hello", "42"]


COMPILED = {
    "go": ('package main\nfunc main() { println("never"); undefined_name() }', "undefined: undefined_name"),
    "rust": ('fn main() { println!("never"); undefined_name(); }', "cannot find function `undefined_name`"),
}


@pytest.mark.parametrize("language", COMPILED)
async def test_code_that_does_not_compile_says_so_and_is_not_run(
    hands: OpenHands, language: str, temporary: Path
) -> None:
    needs(language)
    code, words = COMPILED[language]
    outcome = await ran(hands, language, code)
    assert words in outcome.text
    assert outcome.text.splitlines()[-1].startswith("[it did not compile and was not run; exit code ")
    assert (outcome.failed, os.listdir(temporary)) == (True, [])


async def test_leave_is_asked_for_the_whole_code_and_its_language(hands: OpenHands) -> None:
    code = "print(1)\n" * 500
    ready = await tool().prepare({"language": "Py", "code": code}, hands)
    assert ready.need == Need("run", f"run_code:python\n{code}", folder=".", language="python")


def test_only_what_is_installed_is_told() -> None:
    here = {name: runtime for name, runtime in runtimes.installed().items() if name in ("python", "shell")}
    some = RunCode(Runner("off", os.environ), here)
    assert some.spec.input_schema["properties"]["language"]["enum"] == ["python", "shell"]


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"code": "1"}, "`language` must be text."),
        ({"language": "cobol", "code": "1"}, "`language`: 'cobol' is not known. There is "),
        ({"language": "python"}, "`code` must be text."),
        ({"language": "python", "code": ""}, "`code` must be text."),
        ({"language": "python", "code": "a\0b"}, "`code` must not contain a NUL character."),
        ({"language": "python", "code": "\ud800"}, "`code` has characters that are no text."),
        ({"language": "python", "code": "#" * (MAX_CODE + 1)}, "`code` is longer than 65536 bytes."),
        ({"language": "python", "code": "1", "timeout_ms": 600_001}, "`timeout_ms` must be at most 600000."),
    ],
)
async def test_wrong_parameters_are_told(hands: OpenHands, input: dict[str, Any], words: str) -> None:
    with pytest.raises(Wrong) as caught:
        await tool().prepare(input, hands)
    assert str(caught.value).startswith(words)


async def test_a_language_that_is_not_here_is_told_with_those_that_are(hands: OpenHands) -> None:
    only = RunCode(Runner("off", os.environ), {"shell": runtimes.installed()["shell"]})
    with pytest.raises(Wrong, match=r"ruby is not installed here\. There is shell\."):
        await only.prepare({"language": "rb", "code": "1"}, hands)


async def test_a_folder_that_cannot_be_made_is_told(hands: OpenHands) -> None:
    scratch.make(hands.call_key)
    with pytest.raises(Wrong, match="The code could not be written: File exists"):
        await ran(hands, "shell", "true")
