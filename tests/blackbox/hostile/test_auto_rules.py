"""A chat in `auto` whose user denies `rm`: a model that spells it otherwise is asked about, and nothing runs."""

from __future__ import annotations

import pytest

from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, statuses

Json = dict[str, object]


def command(line: str) -> Json:
    return call("run_command", command=line)


DISGUISED = [
    command("c=m; r$c notes.txt"),
    command("$(echo mr | rev) notes.txt"),
    command("printf '\\162\\155 notes.txt' | sh"),
    command("/bin/r[m] notes.txt"),
    command("cp /bin/rm x && ./x notes.txt"),
    command("eval 'r''m notes.txt'"),
    command('awk \'BEGIN{system("r" "m notes.txt")}\''),
    command("printf 'x:\\n\\t@r\"\"m notes.txt\\n' > Makefile; make -s x"),
    command("alias q=r\\m\nq notes.txt"),
    call("run_code", language="python", code="import os; os.unlink('notes' + '.txt')"),
    call(
        "run_batch",
        commands=[{"label": "1", "command": "$(echo rm) x"}, {"label": "2", "command": "r$()m notes.txt"}],
    ),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_no_disguise_of_a_stopped_command_runs_unasked(bench: Workbench, effect: str) -> None:
    sidecar = bench.start([*DISGUISED, "done"], mode="auto")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect=effect, rule="run(rm *)")
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"] * len(DISGUISED)
    reasons = [asked["params"]["reason"] for asked in sidecar.asked]
    assert len([reason for reason in reasons if "it may do what a rule stops" in reason]) >= 8
    assert bench.read("notes.txt")


@pytest.mark.slow
def test_without_such_a_rule_they_run(bench: Workbench) -> None:
    """So the lines do what they are said to do."""
    for step in DISGUISED[:5]:
        (bench.project / "notes.txt").write_text("here")
        (bench.project / "x").unlink(missing_ok=True)
        sidecar = bench.start([step, "done"], mode="auto")
        sidecar.run("go", chatId="c")
        sidecar.close_stdin()
        sidecar.wait()
        assert not (bench.project / "notes.txt").exists(), step


def test_what_is_understood_runs_unasked_beside_the_rule(bench: Workbench) -> None:
    sidecar = bench.start([command("ls | wc -l"), command("git status"), command("cp notes.txt b"), "done"])
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="run(rm *)")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["completed"] * 3
    assert sidecar.asked == []


def test_an_extraction_asks_where_a_rule_keeps_files(bench: Workbench) -> None:
    lines = ["tar xf a.tar", "unzip a.zip", "git checkout HEAD~1", "cp -r a/. .", "git apply a.patch"]
    sidecar = bench.start([*map(command, lines), "done"], mode="auto")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="edit(docs/**)")
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"] * len(lines)
    assert all("does not show" in asked["params"]["reason"] for asked in sidecar.asked)
