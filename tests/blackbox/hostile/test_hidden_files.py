"""What a read rule withholds is read by no command that runs unasked, however it spells, computes or finds the name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.blackbox.work.test_confinement import ordinary_spawner
from tests.blackbox.work.test_permissions import answer
from tests.blackbox.work.workbench import ALL, Json, Workbench, call, outputs, statuses
from tests.support.sidecar import Sidecar
from tests.unit.system.sandboxes import ORDINARY, give, needed_box, seen_folder

pytestmark = pytest.mark.slow

SECRET = "walnut-4711"


@pytest.fixture
def kept(bench: Workbench) -> Workbench:
    """A project with withheld files: by a folder, by a name, by a link and by another name of the same bytes."""
    project = bench.project
    for path in (
        "vault/plain.txt",
        "vault/deep/er.py",
        ".env",
        "conf/.ENV",
        "store/real.txt",
        "node_modules/m/a",
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"password = {SECRET}\n")
    (project / "node_modules/m/a").unlink()
    os.link(project / "vault/plain.txt", project / "node_modules/m/a")
    (project / "node_modules/m/b").symlink_to("../../vault/deep")
    (project / "later").symlink_to("store")
    (project / "open.txt").write_text("password = public\n")
    bench.git("add", "-f", ".")
    bench.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "kept")
    return bench


def start(bench: Workbench, *steps: Json, effect: str = "deny", said: str = "deny_once") -> Sidecar:
    sidecar = bench.start([*steps, "done"])
    answer(sidecar, said)
    for rule in ("read(vault/**)", "read(.env)", "read(later/real.txt)"):
        sidecar.call("permissionRules/set", chatId="c", scope="user", effect=effect, rule=rule)
    return sidecar


def command(line: str) -> Json:
    return call("run_command", command=line)


EVERY_FILE = """\
import os
for folder, _, names in os.walk("."):
    for name in names:
        try:
            print(open(f"{folder}/{name}").read())
        except OSError:
            print("kept")
"""

READERS = [
    command("python3 -c \"print(open('vau' + 'lt/plain.txt').read())\""),
    command("cat $(echo dmF1bHQvcGxhaW4udHh0 | base64 -d)"),
    command("d=vau; cat ${d}lt/deep/er.py"),
    command("x=nv; cat $PWD/vault/plain.txt /proc/self/cwd/.e$x"),
    command("ls -A | xargs cat; s=sto; cat ${s}re/*"),
    command("sh build.sh"),
    command("grep -rh pass node_modules; tar cf - node_modules | strings"),
    command("x=conf/.; cat ${x}ENV"),
    command("while read f; do cat $f; cp $f x; cat x; done < names"),
    call("run_code", language="python", code=EVERY_FILE),
    call(
        "run_batch",
        commands=[
            {"label": "1", "command": "a=vau; cat ${a}lt/p*"},
            {"label": "2", "command": "a=.e; cat ${a}nv"},
        ],
    ),
]

HISTORY = [
    "git show",
    "git show HEAD",
    "git log -p",
    "git log -u -n 1",
    "git diff HEAD~1",
    "git grep walnut HEAD",
    "git cat-file --batch-all-objects --batch",
    "git format-patch -1 --stdout",
    "git archive HEAD",
    "git fast-export --all",
    "git stash show -p",
    "cd src && git show HEAD",
    "git diff HEAD~1 -- :/",
]


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_no_command_reads_what_a_rule_withholds(kept: Workbench, effect: str) -> None:
    needed_box()
    (kept.project / "build.sh").write_text("cat vault/* vault/*/* .env conf/.[A-Z]* store/*\n")
    (kept.project / "names").write_text("vault/plain.txt\n.env\nconf/.ENV\nstore/real.txt\nopen.txt\n")
    sidecar = start(kept, *READERS, effect=effect)
    session = sidecar.run("go", chatId="c")["sessionId"]
    texts = outputs(sidecar, session)
    assert SECRET not in "\n".join(texts)
    assert sidecar.asked == []
    assert sum("a rule keeps it from reading" in text for text in texts) >= len(READERS) - 1
    assert SECRET not in str(sidecar.call("index/search", chatId="c", queries=["password"], scope="project"))


def test_what_no_rule_withholds_is_read(kept: Workbench) -> None:
    steps = [command("cat $PWD/open.txt"), command("echo new > src/new.txt; cat src/*.py")]
    session = (sidecar := start(kept, *steps)).run("go", chatId="c")["sessionId"]
    first, second = outputs(sidecar, session)
    assert "password = public" in first
    assert "return a - b" in second
    assert statuses(sidecar, session) == ["completed", "completed"]


def test_a_command_that_the_user_permits_reads_it(kept: Workbench) -> None:
    steps = [command("cat vault/plain.txt"), command("cat $PWD/vault/plain.txt")]
    session = (sidecar := start(kept, *steps, said="allow_once")).run("go", chatId="c")["sessionId"]
    assert [SECRET in text for text in outputs(sidecar, session)] == [True, False]


def test_git_shows_no_history_unasked(kept: Workbench) -> None:
    steps = [command(line) for line in HISTORY]
    # The first call of some commands is answered by a hint at a better tool.
    sidecar = start(kept, *(step for step in steps for _ in range(2)))
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert SECRET not in "\n".join(outputs(sidecar, session))
    assert statuses(sidecar, session)[1::2] == ["denied"] * len(steps)


def test_git_shows_summaries_and_named_files_unasked(kept: Workbench) -> None:
    lines = ["git log --oneline -n 3", "git diff --stat HEAD~1 HEAD", "git show --name-only", "git show HEAD:open.txt",
             "git diff HEAD~1 -- open.txt", "git status --short", "git show -s HEAD"]  # fmt: skip
    session = (sidecar := start(kept, *map(command, lines))).run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == ["completed"] * len(lines)
    assert sidecar.asked == []


def test_git_commits_nothing_in_the_place_of_a_hidden_file(kept: Workbench) -> None:
    needed_box()
    kept.git("config", "user.name", "t")
    kept.git("config", "user.email", "t@t")
    (kept.project / "build.sh").write_text(
        "git add -A; git commit -qam x; git stash; git checkout .; git reset --hard\n"
    )
    sidecar = start(kept, command("sh build.sh"))
    sidecar.run("go", chatId="c")
    assert SECRET in kept.git("show", "HEAD:vault/plain.txt")
    assert SECRET in kept.read("vault/plain.txt")
    assert kept.git("log", "--format=%s") == "kept\nstart\n"


def without_bwrap(folder: Path) -> dict[str, str]:
    """A PATH on which there is all but bubblewrap."""
    folder.mkdir()
    for name in ("bash", "sh", "cat", "git", "python3", "ls"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


def test_without_a_sandbox_what_may_read_it_asks(kept: Workbench) -> None:
    steps = [
        command("cat $PWD/open.txt"),
        command("python3 -c 1"),
        call("run_code", language="python", code="1"),
    ]
    model = kept.script([*steps, command("ls"), command("cat open.txt"), "done"])
    sidecar = kept.spawn(
        model=model,
        env=without_bwrap(kept.spawn.folder / "programs"),
        capabilities={"permissions": True, "input": True, "buffers": False},
    )
    kept.open(sidecar)
    answer(sidecar, "deny_once")
    sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="read(.env)")
    session = sidecar.run("go", chatId="c")["sessionId"]
    assert statuses(sidecar, session) == [*["denied"] * 3, "completed", "completed"]
    assert all("there is no sandbox" in asked["params"]["reason"] for asked in sidecar.asked)


def test_commands_of_an_ordinary_user_cannot_read_it_either() -> None:
    with seen_folder() as folder:
        spawner, env = ordinary_spawner(folder)
        bench = Workbench(spawner)
        (bench.project / ".env").write_text(f"password = {SECRET}\n")
        model = bench.script(
            [
                command("x=nv; chmod +r .e$x; cat $PWD/.e$x; id -u"),
                call("run_code", language="python", code=EVERY_FILE),
                "done",
            ]
        )
        give(folder, ORDINARY)
        sidecar = spawner(model=model, env=env, capabilities=ALL)
        bench.open(sidecar)
        sidecar.call("permissionRules/set", chatId="c", scope="user", effect="deny", rule="read(*.env)")
        texts = outputs(sidecar, sidecar.run("go", chatId="c")["sessionId"])
        assert f"\n{ORDINARY}\n" in texts[0]
        assert "Permission denied" in texts[0]
        assert "kept" in texts[1]
        assert SECRET not in "".join(texts)
        spawner.settle()
