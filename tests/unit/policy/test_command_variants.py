"""`auto` beside rules that stop one form of a command, or changes of some files: other words for the same ask."""

from __future__ import annotations

import pytest

from sidecar.policy.decide import Subject, decide
from tests.unit.policy.test_decide import rule


def effect(line: str, *texts: str, folder: str = ".", allow: tuple[str, ...] = ()) -> str:
    rules = [rule("deny", text) for text in texts] + [rule("allow", text) for text in allow]
    return decide(Subject("run", line, folder=folder), "auto", rules).effect


@pytest.mark.parametrize(
    ("denied", "line"),
    [
        ("run(rm -rf *)", "rm -fr a"),
        ("run(rm -rf *)", "rm -r -f a"),
        ("run(rm -rf *)", "rm --recursive --force a"),
        ("run(rm -rf *)", "rm a -rf"),
        ("run(rm -rf *)", "rm -rvf a"),
        ("run(rm -rf *)", "ls && rm --rec -f a"),
        ("run(git push *)", "git --no-pager push origin main"),
        ("run(git push *)", "git --no-optional-locks push"),
        ("run(git push --force *)", "git push -f"),
        ("run(git push --force *)", "git push origin --force"),
        ("run(git push --force *)", "git push --force-with-lease"),
        ("run(git push --force *)", "git push origin +main"),
        ("run(rm notes.txt)", "rm notes.tx?"),
        ("run(rm notes.txt)", "rm ./notes.txt"),
        ("run(rm notes.txt)", "rm -f notes.txt"),
        ("run(rm notes.txt)", "rm a notes.txt"),
        ("run(rm notes.txt)", "cd src && rm ../notes.txt"),
        ("run(=rm a)", "rm 'a'"),
        ("run(=rm a)", "rm -- a"),
        ("run(chmod 777 *)", "chmod -R 777 a"),
    ],
)
def test_a_stopped_command_in_other_words_asks(denied: str, line: str) -> None:
    assert effect(line, denied) == "ask"


@pytest.mark.parametrize(
    ("denied", "line"),
    [
        ("run(rm -rf *)", "rm -r a"),
        ("run(rm -rf *)", "rm a"),
        ("run(git push *)", "git status"),
        ("run(git push --force *)", "git push origin main"),
        ("run(git push --force *)", "git push --tags"),
        ("run(rm notes.txt)", "rm b"),
        ("run(=rm a)", "rm b"),
    ],
)
def test_another_use_of_the_program_runs(denied: str, line: str) -> None:
    assert effect(line, denied) == "allow"


def test_a_rule_of_the_users_own_lets_the_other_form_run() -> None:
    assert effect("rm -fr build", "run(rm -rf *)", allow=("run(rm -fr build)",)) == "allow"
    assert effect("rm -fr build", "run(rm -rf *)", allow=("run(*)",)) == "ask"


CHANGING = [
    "cp a docs/b",
    "rm docs/a",
    "mv docs x",
    "rm -r docs",
    "rm docs/*",
    "sed -i s/a/b/ docs/z",
    "tee docs/a",
    "dd of=docs/a",
    "cd docs && rm a",
    "truncate -s0 ./docs/a",
    "git mv docs/a x",
    "x=docs; rm $x/a",
    "bash -c 'rm docs/a'",
    "python -c \"open('docs/a', 'w')\"",
    "ln -sf x DOCS/a",
]


@pytest.mark.parametrize("line", CHANGING)
def test_a_command_that_names_what_may_not_be_changed_asks(line: str) -> None:
    assert effect(line, "edit(docs/**)") == "ask"
    assert effect(line, "edit(docs/**)", allow=("run(*)",)) == "ask"
    assert effect(line, "edit(other/**)") == "allow"


@pytest.mark.parametrize(
    "line", ["cat docs/a", "grep x docs/b", "ls docs", "cd docs && ls", "rm a", "cp docs2/a b"]
)
def test_a_command_that_changes_nothing_of_it_runs(line: str) -> None:
    assert effect(line, "edit(docs/**)") == "allow"


def test_the_folder_of_the_call_counts() -> None:
    assert effect("rm a", "edit(docs/**)", folder="docs") == "ask"
    assert effect("cp x y", "edit(docs/*.md)", folder="src") == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "mv secrets s2",
        "cp -r secrets x",
        "tar cf x.tar secrets",
        "ln -s secrets x",
        "grep -r a secrets",
        "git diff secrets",
    ],
)
def test_a_command_that_names_the_folder_of_what_may_not_be_read_asks(line: str) -> None:
    assert effect(line, "read(secrets/**)") == "ask"
    assert effect(line, "read(secrets/*.key)") == "ask"


@pytest.mark.parametrize("line", ["ls secrets", "cd secrets && ls", "find secrets -name a", "grep -r a src"])
def test_names_in_it_are_listed_unasked(line: str) -> None:
    assert effect(line, "read(secrets/**)") == "allow"


@pytest.mark.parametrize("line", ["mv x ls", "cat x > ls", "chmod +x ls", "ln -s x ls"])
def test_a_program_is_not_replaced_from_within_its_folder(line: str) -> None:
    assert effect(line, "run(rm *)", folder=".venv/bin") == "ask"
    assert effect(f"cd .venv/bin && {line}", "run(rm *)") == "ask"
    assert effect(line, "run(rm *)", folder="src") == "allow"
