"""A chat in `auto` whose user stops one form of a command, or changes of some files: other words for the same ask."""

from __future__ import annotations

import pytest

from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, statuses

FORMS = [
    "rm -fr src",
    "rm -f -r src",
    "rm --force --recursive src",
    "rm src -rf",
    "git --no-pager push",
    "rm note?.txt",
    "rm -v ./notes.txt",
]
CHANGES = [
    "rm src/add.py",
    "mv src gone",
    "cp notes.txt src/add.py",
    "cd src && truncate -s 0 add.py",
    "python3 -c \"open('src/add.py', 'w')\"",
    "x=src; rm $x/add.py",
    "rm -rf .",
    "rm -r ./*",
    "chmod -R 0 ./",
    "find . -name '*.py' -delete",
    "git clean -fdx",
    "git rm -r .",
    "tar cf a.tar --remove-files .",
    "zip -m a.zip -r .",
]
READS = [
    "grep -r return .",
    "grep -rn return",
    "rg return",
    "git grep return",
    "cp -r . /tmp/copy",
    "tar cf /tmp/a.tar .",
    "zip -r a.zip ./",
    "find . -type f -exec cat {} +",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        (["run(rm -rf *)", "run(git push *)", "run(rm notes.txt)"], FORMS),
        (["edit(src/**)"], CHANGES),
        (["read(src/**)"], READS),
    ],
)
@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_other_words_for_what_a_rule_stops_ask(
    bench: Workbench, rules: list[str], lines: list[str], effect: str
) -> None:
    sidecar = bench.start([*(call("run_command", command=line) for line in lines), "done"], mode="auto")
    for rule in rules:
        sidecar.call("permissionRules/set", chatId="c", scope="user", effect=effect, rule=rule)
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")

    assert statuses(sidecar, ended["sessionId"]) == ["denied"] * len(lines)
    assert len(sidecar.asked) == len(lines)
    assert bench.git("status", "--porcelain") == ""


def test_what_walks_another_folder_runs_unasked(bench: Workbench) -> None:
    (bench.project / "build/deep").mkdir(parents=True)
    lines = [
        "grep -r x build",
        "grep x notes.txt",
        "ls -R .",
        "find . -name x",
        "rm -rf build",
        "cp notes.txt ./n",
    ]
    sidecar = bench.start([*(call("run_command", command=line) for line in lines), "done"], mode="auto")
    for rule in ("read(src/**)", "edit(src/**)"):
        sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule=rule)
    ended = sidecar.run("go", chatId="c")
    assert (sidecar.asked, statuses(sidecar, ended["sessionId"]).count("denied")) == ([], 0)
