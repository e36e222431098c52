"""What a rule's handler says to a prompt; one that fails is skipped with its reason, and nothing of it is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from sidecar.policy.instructions import Instruction, choose_rules, read_rules, render_rules
from sidecar.policy.instructions.handlers import MAX_ANSWER, HandlerSkipped, run_handler
from sidecar.system import redact
from sidecar.workspace.paths import Workspace
from tests.support.processes import pids_with_variable, poll_until
from tests.unit.policy.instructions import lay_out

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="handlers run beneath a keeper, which needs POSIX"
)

SECONDS = 30.0
MARK = "RULE_TEST_MARK"

PACKAGE: dict[str, str | bytes] = {
    "rules_demo.py": """\
def told(prompt, paths, project):
    print("noise")
    return f"{prompt}|{paths}|{project}"

def number(prompt, paths, project):
    return 7

def broken(prompt, paths, project):
    raise ValueError("no such table")
""",
    "rule.py": "def told(prompt, paths, project): return 'a module named as one of ours'",
    "rules_demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: rules-demo\nVersion: 1.0\n",
    "rules_demo-1.0.dist-info/entry_points.txt": "[sidecar.rules]\n"
    "told = rules_demo:told\nnumber = rules_demo:number\nbroken = rules_demo:broken\n"
    "gone = rules_demo:gone\nsame = rule:told\n",
}


async def answer(
    handler: str,
    project: Path,
    *,
    prompt: str = "hello",
    paths: tuple[str, ...] = ("a.py",),
    seconds: float = SECONDS,
    environ: Mapping[str, str] = os.environ,
) -> str:
    rule = Instruction("r.md", "r", "project", handler=handler)
    return await run_handler(rule, prompt, paths, project=str(project), seconds=seconds, environ=environ)


async def why(handler: str, project: Path, **given: float) -> str:
    with pytest.raises(HandlerSkipped) as caught:
        await answer(handler, project, **given)  # type: ignore[arg-type]
    return str(caught.value)


async def test_a_command_reads_json_and_writes_text_in_the_projects_folder(tmp_path: Path) -> None:
    said = await answer("pwd; cat; echo noise >&2", tmp_path, prompt="grüß \ud800", paths=("a b.py", "ü"))
    given = (
        f'{{"prompt": "gr\\u00fc\\u00df \\ud800", "paths": ["a b.py", "\\u00fc"], "project": "{tmp_path}"}}'
    )
    assert said == f"{tmp_path}\n{given}"


async def test_a_prompt_of_any_length_arrives(tmp_path: Path) -> None:
    assert int(await answer("tr -cd y | wc -c", tmp_path, prompt="y" * 3_000_000)) > 3_000_000


async def test_a_command_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    assert await answer("echo done", tmp_path, prompt="x" * 1_000_000) == "done"


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        ("echo first >&2; echo no table >&2; exit 3", "it ended with exit code 3: no table"),
        ("exit 1", "it ended with exit code 1"),
        ("kill -9 $$", "it ended with exit code 137"),
        ("yes | head -c 1000000 >&2; exit 2", "it ended with exit code 2: y"),
        (f"head -c {MAX_ANSWER + 1} /dev/zero", f"it said more than {MAX_ANSWER} bytes"),
        ("yes", f"it said more than {MAX_ANSWER} bytes"),
        ("printf '\\377'", "what it said is not UTF-8"),
    ],
)
async def test_a_failing_command_is_skipped_with_its_reason(
    handler: str, reason: str, tmp_path: Path
) -> None:
    assert await why(handler, tmp_path) == reason


async def test_a_missing_program_is_named(tmp_path: Path) -> None:
    reason = await why("no-such-program-here", tmp_path)
    assert reason.startswith("it ended with exit code 127: ")
    assert "no-such-program-here" in reason


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert await why("true", tmp_path / "gone") == "it could not be started: No such file or directory"


async def test_the_greatest_answer_is_taken(tmp_path: Path) -> None:
    assert len(await answer(f"head -c {MAX_ANSWER} /dev/zero | tr '\\0' x", tmp_path)) == MAX_ANSWER


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found by /proc")
async def test_a_command_over_its_time_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = os.urandom(8).hex()
    handler = f"export {MARK}={mark}; setsid sleep 600 & (sleep 600 &) ; sleep 600"
    assert await why(handler, tmp_path, seconds=1.0) == "it took longer than 1 s"
    assert pids_with_variable(MARK, mark) == set()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found by /proc")
async def test_a_cancelled_command_leaves_no_process_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = os.urandom(8).hex()
    home = lay_out(tmp_path / "tmp", {})
    monkeypatch.setattr("tempfile.tempdir", str(home))

    def is_up() -> bool:
        return poll_until(lambda: (tmp_path / "up").exists(), SECONDS)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, f"export {MARK}={mark}; setsid sleep 600 & touch up; sleep 600", tmp_path)
        assert await anyio.to_thread.run_sync(is_up)
        assert len(list(home.iterdir())) == 1
        tasks.cancel_scope.cancel()
    assert pids_with_variable(MARK, mark) == set()
    assert list(home.iterdir()) == []


async def test_what_a_finished_command_left_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    assert await answer("sleep 600 & echo done", tmp_path) == "done"


async def test_secrets_are_neither_in_the_environment_nor_in_the_answer(tmp_path: Path) -> None:
    environ = {**os.environ, "DEMO_API_KEY": "sk-hidden-one", "SIDECAR_X": "y", "PLAIN": "kept"}
    said = await answer("env", tmp_path, environ=environ)
    assert "PLAIN=kept" in said
    assert "sk-hidden-one" not in said
    redact.add_secrets(["sk-hidden-two"])
    assert "sk-hidden-two" not in await answer("echo sk-hidden-two", tmp_path)


async def test_a_python_entry_point_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    site = lay_out(tmp_path / "site", PACKAGE)
    environ = {**os.environ, "PYTHONPATH": str(site)}
    said = await answer("python:told", tmp_path, prompt="größer", environ=environ)
    assert said == f"größer|['a.py']|{tmp_path}"
    assert await answer("python:same", tmp_path, environ=environ) == "a module named as one of ours"
    assert "rules_demo" not in sys.modules


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("number", "it ended with exit code 1: `number` must return text, and returned int"),
        ("broken", "it ended with exit code 1: ValueError: no such table"),
        ("gone", "it ended with exit code 1: AttributeError: module 'rules_demo' has no attribute 'gone'"),
        (
            "x",
            "it ended with exit code 1: no installed package has an entry point `x` of the group `sidecar.rules`",
        ),
    ],
)
async def test_a_failing_entry_point_is_skipped_with_its_reason(
    name: str, reason: str, tmp_path: Path
) -> None:
    site = lay_out(tmp_path / "site", PACKAGE)
    with pytest.raises(HandlerSkipped) as caught:
        await answer(f"python:{name}", tmp_path, environ={**os.environ, "PYTHONPATH": str(site)})
    assert str(caught.value) == reason


async def test_a_project_cannot_slip_its_own_modules_under_an_entry_point(tmp_path: Path) -> None:
    lay_out(tmp_path, {**PACKAGE, "json.py": "raise SystemExit('slipped in')"})
    assert "no installed package" in await why("python:told", tmp_path)


def test_nothing_runs_when_rules_are_read_chosen_and_rendered(tmp_path: Path) -> None:
    lay_out(tmp_path, {".sidecar/rules/a.md": f"---\nhandler: touch {tmp_path}/ran\n---\nText."})
    rules = choose_rules(read_rules(Workspace(str(tmp_path)), None, ["a"]), "prompt", ["a"])
    assert render_rules(rules, len, 1000, {}).included == (".sidecar/rules/a.md",)
    assert not (tmp_path / "ran").exists()
