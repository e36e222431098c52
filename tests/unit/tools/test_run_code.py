"""`run_code` from the call to the outcome: every language that is here, what comes back, what is refused."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sidecar.context.tokens.counting import TokenCounter
from sidecar.index.index import PLAIN_FAMILY
from sidecar.system import scratch
from sidecar.tools.base import Intent, ToolError, ToolInput
from sidecar.tools.shell import runtimes
from sidecar.tools.shell.run_batch import RunBatch
from sidecar.tools.shell.run_code import MAX_CODE, RunCode
from sidecar.tools.shell.runner import Runner
from sidecar.tools.shell.transcript import MAX_KEPT_BYTES
from tests.support.processes import rss_bytes
from tests.unit.system.shapes import clear, mentions, new_token
from tests.unit.tools.coding import HELLO, OFF, Mode, hands_in, needs, needs_bubblewrap, ran, tool
from tests.unit.tools.context import FolderContext, properties_of


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
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
    context: FolderContext, language: str, mode: Mode, tmp_path: Path, temporary: Path
) -> None:
    needs(language)
    outcome = await ran(context, language, HELLO[language], mode)
    assert outcome.text.splitlines()[0].split() == ["hello", "42", str(tmp_path / "project")]
    assert (outcome.exit_code, outcome.failed, os.listdir(temporary)) == (0, False, [])
    assert "".join(context.shown).split()[:2] == ["hello", "42"]


COMPILED = {
    "go": ('package main\nfunc main() { println("never"); undefined_name() }', "undefined: undefined_name"),
    "rust": ('fn main() { println!("never"); undefined_name(); }', "cannot find function `undefined_name`"),
}


@pytest.mark.parametrize("language", COMPILED)
async def test_code_that_does_not_compile_says_so_and_is_not_run(
    context: FolderContext, language: str, temporary: Path
) -> None:
    needs(language)
    code, words = COMPILED[language]
    outcome = await ran(context, language, code)
    assert words in outcome.text
    assert outcome.text.splitlines()[-1].startswith("[it did not compile and was not run; exit code ")
    assert (outcome.failed, os.listdir(temporary)) == (True, [])


async def test_leave_is_asked_for_the_whole_code_and_its_language(context: FolderContext) -> None:
    code = "print(1)\n" * 500
    ready = await tool().prepare(ToolInput({"language": "Py", "code": code}), context)
    assert ready.intent == Intent(
        "run", f"run_code:python\n{code}", folder=".", language="python", sandbox=OFF
    )


def test_only_what_is_installed_is_told() -> None:
    here = {
        name: runtime
        for name, runtime in runtimes.installed_runtimes().items()
        if name in ("python", "shell")
    }
    some = RunCode(Runner("off", os.environ), here)
    assert properties_of(some.spec.input_schema)["language"]["enum"] == ["python", "shell"]


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
async def test_wrong_parameters_are_told(context: FolderContext, input: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        await tool().prepare(ToolInput(input), context)
    assert str(caught.value).startswith(words)


async def test_a_language_that_is_not_here_is_told_with_those_that_are(context: FolderContext) -> None:
    only = RunCode(Runner("off", os.environ), {"shell": runtimes.installed_runtimes()["shell"]})
    with pytest.raises(ToolError, match=r"ruby is not installed here\. There is shell\."):
        await only.prepare(ToolInput({"language": "rb", "code": "1"}), context)


async def test_a_folder_that_cannot_be_made_is_told(context: FolderContext) -> None:
    scratch.make(context.call_key)
    with pytest.raises(ToolError, match="The code could not be written: File exists"):
        await ran(context, "shell", "true")


def test_what_the_model_is_told_of_both_tools_is_short() -> None:
    """As it is sent, where all eleven languages are installed."""
    every = {
        name: msgspec.structs.replace(runtimes.installed_runtimes()["shell"], language=name) for name in HELLO
    }
    runner = Runner("off", os.environ)
    specs = [RunCode(runner, every).spec, RunBatch(runner).spec]
    sent = [
        json.dumps({"name": spec.name, "description": spec.description, "parameters": spec.input_schema})
        for spec in specs
    ]
    assert sum(TokenCounter().count(text, PLAIN_FAMILY) for text in sent) < 520


@pytest.mark.sampled(1)
async def test_output_without_a_line_break_comes_back(context: FolderContext, mode: Mode) -> None:
    outcome = await ran(context, "python", "print('x' * 3_000_000, end='')", mode)
    assert outcome.whole
    assert outcome.whole.splitlines()[0] == "x" * 3_000_000
    assert (outcome.exit_code, len("".join(context.shown))) == (0, 3_000_000)


async def test_bytes_that_are_no_text_come_back_as_well_formed_text(context: FolderContext) -> None:
    await ran(
        context, "python", "import os, sys\nsys.stdout.buffer.write(os.urandom(300_000) + bytes(range(256)))"
    )
    assert "\0" not in "".join(context.shown)
    "".join(context.shown).encode()


async def test_half_an_emoji_waits_for_its_other_half(context: FolderContext) -> None:
    halves = (
        "import os, time\nfor byte in '😀é'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.12)\n"
    )
    outcome = await ran(context, "python", halves + "os.write(1, '😀'.encode()[:2])")
    assert outcome.text.splitlines()[0] == "😀é\ufffd"
    assert "".join(context.shown) == "😀é\ufffd"
    assert len(context.shown) > 1


@pytest.mark.sampled(1)
async def test_endless_output_ends_with_its_time_in_bounded_memory(
    context: FolderContext, mode: Mode
) -> None:
    before = rss_bytes(os.getpid())
    outcome = await ran(context, "shell", "yes endless", mode, timeout_ms=1500)
    assert "[killed: the time limit of 1.5 s was over; " in outcome.text.splitlines()[-1]
    assert len("".join(context.shown)) <= MAX_KEPT_BYTES
    assert rss_bytes(os.getpid()) - before < 12 * MAX_KEPT_BYTES


@pytest.mark.sampled(1)
async def test_code_that_is_deaf_to_the_end_is_killed(
    context: FolderContext, mode: Mode, temporary: Path
) -> None:
    token = new_token()
    code = f"import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.execv('/bin/sleep', ['x', '{token}'])"
    try:
        outcome = await ran(context, "python", code, mode, timeout_ms=1500)
        assert (outcome.failed, mentions(token), os.listdir(temporary)) == (True, set(), [])
    finally:
        clear(token)


async def test_folders_that_the_code_has_closed_and_links_out_of_them_are_cleaned_up(
    context: FolderContext, tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "precious").write_text("kept")
    code = f"cd {temporary}/sidecar-*\nmkdir -p a/b/c\nln -s {tmp_path} a/b/out\nchmod 0 a/b/c a"
    outcome = await ran(context, "shell", code)
    assert (outcome.exit_code, os.listdir(temporary)) == (0, [])
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.mark.sampled(1)
async def test_modules_of_the_project_can_be_imported(
    context: FolderContext, tmp_path: Path, mode: Mode
) -> None:
    (tmp_path / "project/looms.py").write_text("count = 7")
    (tmp_path / "project/node_modules/looms").mkdir(parents=True)
    (tmp_path / "project/node_modules/looms/index.js").write_text("module.exports = { count: 7 }")
    assert (await ran(context, "python", "import looms\nprint(looms.count)", mode)).text.startswith("7\n")
    if "javascript" in runtimes.installed_runtimes() and not runtimes.is_broken(
        runtimes.installed_runtimes()["javascript"]
    ):
        script = await ran(context, "javascript", "console.log(require('looms').count)", mode)
        module = await ran(context, "javascript", "import looms from 'looms'\nconsole.log(looms.count)", mode)
        assert (script.text[:2], module.text[:2]) == ("7\n", "7\n")


@pytest.mark.parametrize(
    ("header", "version", "strips"),
    [
        ("22 18", "", True),
        ("24 0", "", True),
        ("22 17", "", False),
        (None, "v23.6.0", True),
        (None, "v20.1.0", False),
    ],
)
def test_typescript_is_run_by_a_node_that_can(
    tmp_path: Path, header: str | None, version: str, strips: bool
) -> None:
    node = tmp_path / "bin/node"
    node.parent.mkdir()
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    if header:
        major, minor = header.split()
        (tmp_path / "include/node").mkdir(parents=True)
        (tmp_path / "include/node/node_version.h").write_text(
            f"#define NODE_MAJOR_VERSION {major}\n#define NODE_MINOR_VERSION {minor}\n"
        )
    found = runtimes.find_runtimes(str(tmp_path / "bin"))
    assert ("typescript" in found, "javascript" in found) == (strips, True)


def test_what_is_on_the_path_is_found_and_python_is_always_there(tmp_path: Path) -> None:
    assert list(runtimes.find_runtimes(str(tmp_path / "nothing"))) == ["python"]
    for name in ("deno", "ruby", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = runtimes.find_runtimes(str(tmp_path))
    assert list(found) == ["python", "javascript", "typescript", "shell", "ruby"]
    assert found["typescript"].run[:2] == (str(tmp_path / "deno"), "run")


SHIMS = {
    "exits with 1": ("#!/bin/sh\necho no toolchain >&2\nexit 1\n", "failed with exit code 1"),
    "prints nothing": ("#!/bin/sh\n", "printed nothing"),
    "hangs": ("#!/bin/sh\nsleep 1000\n", "did not answer in 1 s"),
    "crashes": ("#!/bin/sh\necho 1.0\nkill -SEGV $$\n", "was ended by signal 11"),
    "has no interpreter": ("#!/no/such/shell\n", "cannot be started: No such file or directory"),
    "is no program": ("\0\1\2\3", "cannot be started: Exec format error"),
    "leaves a child with its pipe": ("#!/bin/sh\nsleep 1000 &\nexit 3\n", "did not answer in 1 s"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shim", SHIMS)
@pytest.mark.parametrize(("language", "name"), [("rust", "rustc"), ("ruby", "ruby"), ("php", "php")])
async def test_a_shim_that_does_not_run_is_no_language(
    context: FolderContext,
    shim: str,
    language: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtimes, "TRIAL_S", 20.0 if "1 s" not in SHIMS[shim][1] else 1.0)
    folder = tmp_path / "shims"
    folder.mkdir()
    (folder / name).write_text(SHIMS[shim][0])
    (folder / name).chmod(0o755)
    candidates = runtimes.find_runtimes(str(folder))
    with pytest.raises(ToolError) as caught:
        await RunCode(Runner("off", os.environ), candidates).prepare(
            ToolInput({"language": language, "code": "1"}), context
        )
    why = f"`language`: {language} is not installed here: {folder / name} {SHIMS[shim][1]}. There is python."
    assert (str(caught.value), runtimes.is_broken(candidates[language])) == (why, True)


@pytest.mark.parametrize(("script", "offered"), [("exit 1", False), ("echo rustc 1.95", True)])
def test_a_launcher_without_a_compiler_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, offered: bool
) -> None:
    (tmp_path / "rustup").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "rustup").chmod(0o755)
    (tmp_path / "rustc").symlink_to("rustup")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ("rust" in runtimes.installed_runtimes()) == offered


def test_a_file_that_may_not_be_executed_is_no_language(tmp_path: Path) -> None:
    (tmp_path / "ruby").write_text("#!/bin/sh\necho 1\n")
    assert "ruby" not in runtimes.find_runtimes(str(tmp_path))


def test_the_next_program_stands_in_for_one_that_does_not_run(tmp_path: Path) -> None:
    for name, script in (("node", "exit 1"), ("deno", "exit 1"), ("bun", "echo 1.2")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    found = runtimes.find_runtimes(str(tmp_path))["javascript"]
    assert runtimes.first_working(found).program == str(tmp_path / "bun")
    assert not runtimes.is_broken(found)


def test_without_a_trial_a_shim_would_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rustc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "rustc").chmod(0o755)
    found = runtimes.find_runtimes(str(tmp_path))["rust"]
    with pytest.raises(runtimes.RuntimeBroken):
        runtimes.first_working(found)
    monkeypatch.setattr(runtimes, "_fault", lambda program, trial: None)
    assert runtimes.first_working(found) == found
