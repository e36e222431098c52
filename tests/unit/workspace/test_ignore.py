"""What `.gitignore` hides: the same as git hides, whatever the rules; and no pattern takes long."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.workspace.globs import MAX_ALTERNATIVES, BadPattern, expand_braces, parse_glob
from sidecar.workspace.ignore import MAX_FILE, Ignore
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.unit.workspace.hostile import Scene

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FILES = [
    "a.py",
    "a.pyc",
    "b/a.py",
    "b/c/a.log",
    "b/c/keep.log",
    "build/x.o",
    "docs/build/y.html",
    "docs/deep/er/z.md",
    "node_modules/m/index.js",
    "src/node_modules/n.js",
    "foo bar.txt",
    "trailing ",
    "#hash",
    "!bang",
    "[x].txt",
    "x.txt",
    "star*.txt",
    ".hidden/file",
    "v1.tmp",
    "v2.tmp",
    "vx.tmp",
    "back\\slash",
    "-dash",
    "éé.txt",
    "logs/a/b/c/d.log",
    "logs/d.log",
]
RULES = [
    ["*.pyc"],
    ["build/"],
    ["/build"],
    ["/build/"],
    ["docs/build"],
    ["build"],
    ["node_modules"],
    ["/node_modules/"],
    ["*.log", "!keep.log"],
    ["b/", "!b/c/keep.log"],
    ["b/*", "!b/c"],
    ["/*", "!/src"],
    ["*", "!*.py", "!*/"],
    ["**/a.py"],
    ["b/**"],
    ["docs/**/z.md"],
    ["**/build/**"],
    ["logs/**/d.log"],
    ["logs/*/d.log"],
    ["logs/**/c/*.log"],
    ["**"],
    ["*/"],
    ["foo bar.txt   "],
    ["trailing\\ "],
    ["trailing "],
    ["\\#hash", "#hash"],
    ["\\!bang"],
    ["[[]x].txt"],
    ["\\[x\\].txt"],
    ["[x].txt"],
    ["[!x].txt"],
    ["[^a-w].txt"],
    ["v[0-9].tmp"],
    ["v[![:digit:]].tmp"],
    ["v[9-0].tmp"],
    ["v[.tmp"],
    ["v?.tmp"],
    ["star\\*.txt"],
    ["s*r*t"],
    ["back\\\\slash"],
    ["back\\slash"],
    ["-dash"],
    ["éé.*"],
    [".*"],
    ["", "  ", "/", "//", "!", "\\", "a.py\r"],
    ["a/b/../c", "./a.py", "b//a.py"],
    ["*.[oc]", "x.[!t]*"],
    ["a**.py", "**.md"],
    ["[]x].txt", "[a-]x"],
]


def tree(folder: Path) -> None:
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def shown(folder: Path, start: str = ".") -> set[str]:
    """What a walk finds, and what `hides` says of each file by itself: one and the same."""
    workspace = Workspace(str(folder))
    walked = Ignore(workspace, start)
    found: set[str] = set()
    for place, entries in workspace.walk(start):
        entries[:] = walked.without_ignored(place, entries)
        found |= {"/".join((*place.parts, entry.name)) for entry in entries if entry.kind == "file"}
    asked = Ignore(workspace, start)
    beneath = "" if start == "." else f"{start}/"
    every = [os.path.relpath(path, folder) for path in folder.rglob("*") if path.is_file()]
    inside = [path for path in every if path.startswith(beneath)]
    assert {path for path in inside if not asked.hides(tuple(path.split("/")))} == found
    return found


def by_git(scene: Scene) -> set[str]:
    listed = scene.git("ls-files", "--others", "--cached", "--exclude-standard", "-z")
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.git("rm", "-q", "-f", "a.txt")
    tree(scene.project)
    return scene


@needs_git
@pytest.mark.parametrize("rules", RULES, ids=" ".join)
def test_the_same_is_hidden_as_git_hides(scene: Scene, rules: list[str]) -> None:
    (scene.project / ".gitignore").write_bytes("\n".join(rules).encode())
    assert shown(scene.project) == by_git(scene)


@pytest.mark.slow
@needs_git
def test_rules_of_nested_files_meet_as_in_git(scene: Scene) -> None:
    draw = random.Random(7)
    rules = [line for lines in RULES for line in lines]
    for _ in range(60):
        for folder in ("", "b", "b/c", "docs", "logs", "src"):
            lines = draw.sample(rules, draw.choice((0, 1, 3)))
            (scene.project / folder / ".gitignore").write_text("\n".join(lines))
        (scene.project / ".git/info/exclude").write_text("\n".join(draw.sample(rules, 2)))
        assert shown(scene.project) == by_git(scene)


def test_the_git_folder_is_hidden_without_any_rule(tmp_path: Path) -> None:
    for name in (".git/config", "sub/.git/config", "sub/.github/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert shown(tmp_path) == {"sub/.github/x"}


def test_a_hidden_folder_that_is_asked_for_is_looked_into(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / ".gitignore").write_text("node_modules\n*.js\n")
    assert shown(tmp_path, "node_modules") == {"node_modules/m/index.js"}
    assert shown(tmp_path, "src") == set()


def test_rules_above_a_start_that_is_not_hidden_hold(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / ".gitignore").write_text("/logs/a\n")
    assert shown(tmp_path, "logs") == {"logs/d.log"}


def test_rules_that_cannot_be_read_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").touch()
    (tmp_path / "outside").write_text("*\n")
    (tmp_path / "a/.gitignore").write_bytes(b"x\n" + b"#" * MAX_FILE)
    os.mkfifo(tmp_path / ".gitignore")
    assert shown(tmp_path / "a") == {"x", ".gitignore"}
    assert "a/x" in shown(tmp_path)
    os.unlink(tmp_path / "a/.gitignore")
    os.symlink("../outside", tmp_path / "a/.gitignore")
    assert not Ignore(Workspace(str(tmp_path / "a"))).hides(("x",))


def test_a_path_of_a_thousand_folders_is_judged(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    ignore = Ignore(Workspace(str(tmp_path)))
    folders = ("d",) * 1500
    assert not ignore.hides((*folders, "x"))
    assert ignore.hides((*folders, "x.log"))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 100 + "*b", "a" * 250),
        ("?*" * 100 + "b", "a" * 250),
        ("[a-z]*" * 80 + "!", "a" * 250),
        ("**/a/" * 150 + "b", "a/" * 1500 + "c"),
        ("**/*a*a*a/" * 80 + "b", "aaaaaaaaaaaaaaaa/" * 200 + "c"),
        ("a" * 900 + "*", "a" * 250),
    ],
)
async def test_no_pattern_blows_up(pattern: str, name: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        glob = parse_glob(pattern)
        assert not await anyio.to_thread.run_sync(glob.matches, name.split("/"), abandon_on_cancel=True)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["*.py"]),
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}/{c,d}", ["a/c", "a/d", "b/c", "b/d"]),
        ("x{a,{b,c}d}", ["xa", "xbd", "xcd"]),
        ("{a}", ["{a}"]),
        ("{a,}", ["a", ""]),
        ("{a,b", ["{a,b"]),
        ("a}b,c{", ["a}b,c{"]),
        ("\\{a,b}", ["\\{a,b}"]),
        ("{{a,b}}", ["{a}", "{b}"]),
    ],
)
def test_braces_stand_for_each_alternative(pattern: str, expected: list[str]) -> None:
    assert expand_braces(pattern) == expected


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(BadPattern, match=str(MAX_ALTERNATIVES)):
        expand_braces("{a,b}" * 10)
    with pytest.raises(BadPattern, match=str(MAX_ALTERNATIVES)):
        expand_braces("{" * 400 + "a,b" + "}" * 300 + ",c{d,e}" * 100)
