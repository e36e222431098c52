"""What git runs need not be in `.git`: scripts that hooks and settings lead to, bare repositories, and linked work
trees are asked about, read-only for commands, and reported like `.git` itself.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.system import git_folders
from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import Workbench, call, outputs, statuses
from tests.unit.system.sandboxes import needed_box

pytestmark = pytest.mark.slow


def git(folder: Path, *words: str) -> None:
    safe = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/nonexistent", "-c", "user.name=t"]
    subprocess.run(["git", *safe, *words], cwd=folder, check=True, capture_output=True, timeout=20)


def put(path: Path, text: str = "old\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def settings(project: Path, text: str) -> None:
    with (project / ".git/config").open("a") as file:
        file.write(text)


def linked_hook(project: Path) -> None:
    (project / ".git/hooks").mkdir(exist_ok=True)
    (project / ".git/hooks/pre-commit").symlink_to("../../tools/target")


def linked_hooks(project: Path) -> None:
    for sample in (project / ".git/hooks").iterdir():
        sample.unlink()
    (project / ".git/hooks").rmdir()
    (project / ".git/hooks").symlink_to("../tools")


def bare(project: Path, name: str) -> None:
    git(project, "init", "-q", "--bare", name)


def pointed(project: Path) -> None:
    bare(project, ".store")
    put(project / "tree/.git", "gitdir: ../.store\n")


def nested_include(project: Path) -> None:
    put(project / "one", "[include]\npath = tools/target\n")
    settings(project, "[include]\npath=../one\n")


WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a hook that is a link": ("tools/target", linked_hook),
    "hooks that are a link": ("tools/target", linked_hooks),
    "core.hooksPath": ("tools/target", lambda p: settings(p, "[core]\n\thooksPath = tools\n")),
    "a spelling that git accepts": (
        "tools/target",
        lambda p: settings(p, '[CORE] HooksPath="./too\\\nls/" ; comment\n'),
    ),
    "an included file": ("tools/target", lambda p: settings(p, "[include]\n\tpath = ../tools/target\n")),
    "a file included on a condition": (
        "tools/target",
        lambda p: settings(p, '[includeIf "onbranch:*"]\n\tpath = ../tools/target\n'),
    ),
    "a file that an included one includes": ("tools/target", nested_include),
    "a file watcher": ("tools/target", lambda p: settings(p, "[core]\n\tfsmonitor = tools/target\n")),
    "a filter by an interpreter": (
        "tools/target",
        lambda p: settings(p, '[filter "x"]\n\tclean = sh ./tools/target %f\n'),
    ),
    "an alias": ("tools/target", lambda p: settings(p, '[alias]\n\tst = "!tools/target; true"\n')),
    "a bare repository": ("store/config", lambda p: bare(p, "store")),
    "hooks of a bare repository": ("deep/x.git/hooks/post-update", lambda p: bare(p, "deep/x.git")),
    "a .git file": (".store/config", pointed),
}


@pytest.fixture(params=WAYS)
def target(bench: Workbench, request: pytest.FixtureRequest) -> str:
    path, prepare = WAYS[request.param]
    put(bench.project / "tools/target", "# old\n")
    prepare(bench.project)
    return path


def test_an_edit_of_it_asks(bench: Workbench, target: str) -> None:
    steps = [call("read_file", path=target)] if (bench.project / target).exists() else []
    sidecar = bench.start(
        [*steps, call("write_file", path=target, content="evil\n"), "done"], mode="accept-edits"
    )
    answer(sidecar, "deny_once")
    ended = sidecar.run("go", chatId="c")
    assert statuses(sidecar, ended["sessionId"])[-1] == "denied"
    (asked,) = sidecar.asked
    assert "git runs programs by it" in asked["params"]["reason"]


MISSING = {
    "tools/watch": "[core]\nfsmonitor = ./tools/watch\n",
    "clean.py": '[filter "f"]\nclean = python3 clean.py %f\n',
    "ext.sh": '[diff]\nexternal = "sh ext.sh"\n',
    "bin/gpg": "[gpg]\nprogram = bin/gpg\n",
    "ssh.cfg": "[core]\nsshCommand = ssh -F ssh.cfg\n",
    "cred.sh": '[credential "https://x.test"]\nhelper = "!./cred.sh"\n',
    "attributes": "[core]\nattributesFile = attributes\n",
    "merge.d/run": '[merge "m"]\ndriver = merge.d/run %O %A\n',
}


def test_scripts_that_its_settings_name_ask_before_they_exist(bench: Workbench) -> None:
    settings(bench.project, "".join(MISSING.values()))
    steps = [call("write_file", path=path, content="x") for path in (*MISSING, "gpg", "src/ext.sh")]
    sidecar = bench.start([*steps, "done"], mode="accept-edits")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == [*["denied"] * len(MISSING), "completed", "completed"]


def test_a_command_cannot_change_it(bench: Workbench, target: str) -> None:
    needed_box()
    path = bench.project / target
    before = path.read_bytes() if path.exists() else None
    lines = f"echo evil >> {target}; rm -f {target}; echo evil > new; mv new {target}"
    folders = f"d=$(dirname {target}); mv $d moved && mkdir $d && echo evil > {target}"
    put(bench.project / "build.sh", f"{lines}\n{folders}\ntouch alive\n")
    sidecar = bench.start([call("run_command", command="sh build.sh"), "done"])
    sidecar.run("go", chatId="c")
    assert (bench.project / "alive").exists()
    assert (path.read_bytes() if path.exists() else None) == before


PLANTED = {
    "a bare repository": (
        "mkdir -p n/objects n/refs; echo 'ref: refs/heads/x' > n/HEAD; touch n/config",
        "n/config",
    ),
    "one that shares another": (
        "mkdir n; echo 'ref: refs/heads/x' > n/HEAD; echo ../b > n/commondir",
        "n/commondir",
    ),
    "a rebase": (
        "mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo",
        "git-rebase-todo",
    ),
    "an included file": ("echo '[core] fsmonitor = x' > local.inc", "local.inc"),
    "hooks that were missing": ("mkdir later; echo x > later/pre-commit", "later"),
    "settings of a work tree": (
        "echo '[core]' > .git/worktrees/w/config.worktree",
        "worktrees/w/config.worktree",
    ),
}


def test_what_a_command_plants_is_reported(bench: Workbench) -> None:
    git(bench.project, "worktree", "add", "-q", "w")
    settings(bench.project, "[include]\npath = ../local.inc\n[core]\nhooksPath = later\n")
    sidecar = bench.start([*(call("run_command", command=line) for line, _ in PLANTED.values()), "done"])
    answer(sidecar, "allow_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    for (line, named), said in zip(PLANTED.values(), outputs(sidecar, session), strict=True):
        assert named in said.rpartition("it created ")[2], line


@pytest.mark.parametrize("place", ["w", "../w"])
def test_a_linked_work_tree_keeps_its_settings(bench: Workbench, place: str) -> None:
    needed_box()
    git(bench.project, "worktree", "add", "-q", place)
    lines = [
        "echo ../../../evil > .git/worktrees/w/commondir",
        "mv .git/worktrees/w .git/worktrees/x; mkdir .git/worktrees/w; echo ../evil > .git/worktrees/w/commondir",
        "mv .git/worktrees .git/other; mkdir -p .git/worktrees/w; echo ../evil > .git/worktrees/w/commondir",
        "rm w/.git",
        "test ! -e w || cd w && echo x > new.txt && git add new.txt; touch ~+/alive; touch ../alive",
    ]
    sidecar = bench.start([*(call("run_command", command=line) for line in lines), "done"])
    answer(sidecar, "allow_once")
    sidecar.run("go", chatId="c")
    assert (bench.project / ".git/worktrees/w/commondir").read_text() == "../..\n"
    assert (bench.project / place / ".git").exists()
    assert (bench.project / "alive").exists()


def test_a_head_that_would_make_a_folder_a_repository_asks(bench: Workbench) -> None:
    steps = [
        call("write_file", path=path, content="x") for path in ("n/HEAD", "m/head", "n/HEADER", "head/x")
    ]
    sidecar = bench.start([*steps, call("run_command", command="git log HEAD"), "done"], mode="accept-edits")
    answer(sidecar, "deny_once")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["denied", "denied", "completed", "completed", "completed"]


def test_ordinary_files_are_edited_and_written_without_a_question(bench: Workbench) -> None:
    put(bench.project / "origin", "x")
    settings(bench.project, '[remote "origin"]\nurl = ../src\nfetch = +x:y\n[user]\nname = origin\n')
    settings(bench.project, '[branch "main"]\nremote = origin\nmerge = refs/heads/main\n')
    steps = [call("write_file", path=path, content="x") for path in ("src/new.py", "origin.txt", "objects/a")]
    sidecar = bench.start(
        [*steps, call("read_file", path="origin"), call("write_file", path="origin", content="y"), "done"],
        mode="accept-edits",
    )
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert (statuses(sidecar, session), sidecar.asked) == (["completed"] * 5, [])


@pytest.mark.parametrize(
    "text",
    [
        "[core",
        "hooksPath = x",
        '[core "x\\"]"] hooksPath',
        "[include]\npath = config\n",
        "[include]\npath = .\npath = /\npath =\n",
        "[core]\nhooksPath = \x00\n",
        "=\n[]\n[ ]\n" + "[core]" * 1000,
    ],
)
def test_a_configuration_that_is_none_is_read_without_harm(tmp_path: Path, text: str) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/config").write_text(text)
    assert isinstance(git_folders.links(str(tmp_path / ".git")), list)
