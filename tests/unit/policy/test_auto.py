"""`auto` where some rule denies or asks for commands: what cannot be told from its words asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.policy import code
from sidecar.policy.decide import HookAdvice, Subject, decide
from sidecar.policy.rules import Rule
from tests.unit.policy.disguises import OTHERS, SHELLS, generated, runs_rm
from tests.unit.policy.test_decide import rule

DENY_RM = [rule("deny", "run(rm *)")]
ASK_PUSH = [rule("ask", "run(git push *)")]


def effect(line: str, rules: list[Rule], mode: str = "auto", **more: object) -> str:
    return decide(Subject("run", line, folder=".", **more), mode, rules).effect  # type: ignore[arg-type]


def caught(lines: list[str], folder: Path) -> int:
    """Asserts that no line which runs rm is let through; returns how many do."""
    running = [line for line in lines if any(runs_rm(shell, line, folder) for shell in SHELLS)]
    assert [line for line in running if effect(line, DENY_RM) == "allow"] == []
    return len(running)


@pytest.mark.skipif(not SHELLS, reason="there is no shell to ask")
def test_no_disguise_of_a_denied_command_runs_unasked(tmp_path: Path) -> None:
    assert caught(list(generated(1, 50)), tmp_path) >= 25


@pytest.mark.slow
@pytest.mark.skipif(not SHELLS, reason="there is no shell to ask")
def test_no_disguise_of_many_runs_unasked(tmp_path: Path) -> None:
    assert caught(list(generated(2, 500)), tmp_path) >= 250


@pytest.mark.skipif(not SHELLS, reason="there is no shell to ask")
def test_no_other_way_to_run_it_runs_unasked(tmp_path: Path) -> None:
    assert caught(list(OTHERS), tmp_path) >= 15
    assert [line for line in OTHERS if effect(line, DENY_RM) == "allow"] == []


def test_the_disguises_find_a_twin_that_lets_unclear_lines_run() -> None:
    lines = [*generated(1, 50), *OTHERS]
    assert len([line for line in lines if effect(line, []) == "allow"]) == len(lines)
    by_words = [line for line in lines if effect(line, DENY_RM) != "deny"]
    assert len(by_words) >= 25, "too few lines that the rule alone does not see"


@pytest.mark.parametrize(
    "line",
    ["timeout 5 rm a", "env rm a", "nice rm a", "ls | xargs rm", "sudo rm a", "nohup rm a", "/bin/rm a", "\\rm a",
     "/bin/../bin/rm a", "command rm a", "busybox rm a", "find . -exec rm {} +", "time rm a", "true; RM a"],
)  # fmt: skip
def test_a_transparent_wrapper_is_denied_by_the_rule_itself(line: str) -> None:
    assert effect(line, DENY_RM) == "deny"


UNKNOWN = [
    "make test",
    "npm run build",
    "./script a",
    "bin/ls",
    "/tmp/ls",
    "pytest -q",
    "cargo build",
    "sh s",
    "python x.py",
    "ssh host ls",
    "git -c alias.x=y x",
    "git x",
    "fakeroot x",
    "LS",
    "ls.exe",
    "cp /usr/bin/x y",
    "cp x node_modules/.bin/ls",
    "echo x > .bin/ls",
    "mv x .pyenv/shims/ls",
    "tar cf host:a.tar src",
    "tar -cf user@host:a.tar src",
    "tar czf x.tgz --file=host:/b src",
    "less --cmd=!x a",
    "ln -s ../../bin/x y",
    "cat x > /usr/local/bin/head",
    "ls \u2013la; x\u00a0y",
    "ls\r\nx",
    "x\0y",
    "ls \u202e a",
    "cat <<E\nx\nE",
    "diff <(a) <(b)",
    "PATH=.:$PATH ls",
    "LD_PRELOAD=x ls",
    "tar xf a.tar",
    "unzip a.zip",
    "7z x a.7z",
    "ar x a.a",
    "jar xf a.jar",
    "bsdtar -x -f a",
    "tar --ext -f a",
    "tar -zvxf a.tgz",
    "cpio -idm",
    "patch -p1",
    "rsync -a a b",
    "unrar x a.rar",
]


@pytest.mark.parametrize("rules", [DENY_RM, ASK_PUSH, [rule("deny", "run(=whoami)")]])
@pytest.mark.parametrize("line", UNKNOWN)
def test_what_may_run_another_program_asks(line: str, rules: list[Rule]) -> None:
    assert effect(line, rules) == "ask"
    assert effect(line, [*rules, rule("allow", "run(*)"), rule("allow", "*")], "ask") == "ask"
    assert effect(line, []) == "allow", "without such a rule auto lets all run"
    assert effect(line, [rule("deny", "fetch(*)"), rule("allow", "run(x)")]) == "allow"


@pytest.mark.parametrize(
    "line",
    ["ls -la", "cat a | grep b | wc -l", "git status", "git commit -m 'x'", "cp a b", "mv a b && touch c",
     "cd src && ls", "find . -name '*.py'",
     "/usr/bin/ls", "sed -n 1,5p a", "echo a > b", "mkdir -p a/b", "tar czf a.tgz src",
     "tar tf a.tar", "unzip -l a.zip", "FORCE_COLOR=1 ls", "# why\nls"],
)  # fmt: skip
def test_what_is_understood_still_runs_unasked(line: str) -> None:
    assert effect(line, DENY_RM) == "allow"


def test_a_rule_for_just_this_still_gives_leave() -> None:
    assert effect("make test", [*DENY_RM, rule("allow", "run(make *)")]) == "allow"
    assert effect("echo $x", [*DENY_RM, rule("allow", "run(=echo $x)")]) == "allow"


@pytest.mark.parametrize("line", UNKNOWN)
def test_a_hook_gives_no_leave_for_what_may_be_a_stopped_command(line: str) -> None:
    hook = HookAdvice("allow", "fine", "h")
    for mode in ("ask", "auto"):
        assert decide(Subject("run", line), mode, DENY_RM, hook=hook).effect == "ask"
        assert decide(Subject("run", line), mode, [], hook=hook).effect == "allow"


def test_the_reason_names_the_rule_and_what_is_not_known() -> None:
    assert decide(Subject("run", "r$()m a"), "auto", DENY_RM).reason == (
        "it may do what a rule stops, run(rm *): it has a substitution or an expansion ($)"
    )


@pytest.mark.parametrize("language", ["python", "shell", "perl", "javascript"])
def test_code_asks_where_a_rule_stops_commands(language: str) -> None:
    subject = Subject("run", code.code_subject(language, "1"), folder=".", language=language)
    assert decide(subject, "auto", DENY_RM).effect == "ask"
    assert decide(subject, "auto", []).effect == "allow"
    assert decide(subject, "auto", [*DENY_RM, rule("allow", f"run(run_code:{language})")]).effect == "allow"


WRITES_UNSEEN = ["tar xf a", "unzip a", "git checkout b", "git stash pop", "git apply p", "cp -r a b", "cp -a a b",
                 "curl -O http://x.test/a", "rsync -a a b", "git pull", "7z e a", "jar -xf a"]  # fmt: skip


@pytest.mark.parametrize("line", WRITES_UNSEEN)
def test_what_writes_files_that_the_line_does_not_show_asks_where_a_rule_stops_edits(line: str) -> None:
    assert effect(line, [rule("deny", "edit(docs/**)")]) == "ask"
    assert effect(line, [rule("ask", "edit(package.json)")]) == "ask"
    assert effect(line, []) == "allow"


@pytest.mark.parametrize(
    "line", ["tar xf a", "tar -xzf a", "unzip a", "7z x a", "ar x a", "jar xf a", "cpio -i"]
)
def test_no_rule_with_a_wildcard_gives_leave_for_an_extraction(line: str) -> None:
    name = line.split()[0]
    assert effect(line, [rule("allow", f"run({name} *)")], "ask") == "ask"
    assert effect(line, [rule("allow", f"run(={line})")], "ask") == "allow"
