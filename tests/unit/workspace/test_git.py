"""What git says of a project is reported, and nothing that a repository plants is run or read for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sidecar.model.failures import Refused
from sidecar.workspace import git, git_waits
from sidecar.workspace.git import FileDiff, GitDiff, diff, is_repository
from sidecar.workspace.paths import Workspace
from tests.support.patience import PATIENCE_S
from tests.unit.workspace.hostile import CAUGHT, HOSTILE, REFUSED, SECRET, UNREADABLE, Scene, clean

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def told(folder: Path, *, staged: bool = False, path: str | None = None) -> GitDiff:
    return await diff(Workspace(str(folder)), staged=staged, path=path)


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_of_a_hostile_repository_runs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    HOSTILE[name](scene)
    scene.trace.unlink(missing_ok=True)
    for variable, value in scene.environ.items():
        monkeypatch.setenv(variable, value)
    given = [await _given(scene, staged=staged) for staged in (True, False)]
    assert scene.ran() == []
    assert given == [name not in REFUSED, name not in REFUSED | UNREADABLE]


async def _given(scene: Scene, *, staged: bool) -> bool:
    """Whether a diff was given, which has then what is changed and nothing from outside."""
    try:
        found = await told(scene.project, staged=staged)
    except Refused:
        return False
    assert staged or found.files
    assert SECRET not in found.text + found.summary
    return True


def test_there_are_many_hostile_repositories() -> None:
    assert len(HOSTILE) >= 40


def caught(base: Path, *command: str) -> set[str]:
    """Which of the hostile repositories leave a trace when git is asked this way."""
    found = set()
    for name, plant in HOSTILE.items():
        folder = base / name.replace(" ", "_")  # a shell would part the path of the planted program
        folder.mkdir()
        scene = Scene(folder)
        plant(scene)
        scene.trace.unlink(missing_ok=True)
        if "pipe" not in name and "huge" not in name:
            subprocess.run(
                ["git", *command],
                cwd=scene.project,
                env=clean() | scene.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_S,
            )
        if scene.ran():
            found.add(name)
    return found


@pytest.mark.slow
def test_a_plain_git_diff_is_found_out(tmp_path: Path) -> None:
    assert caught(tmp_path, "diff") >= CAUGHT


@pytest.mark.slow
def test_a_git_diff_that_only_forbids_external_programs_is_found_out(tmp_path: Path) -> None:
    command = ("diff", "--no-ext-diff", "--no-textconv")
    assert caught(tmp_path, *command) >= {"fsmonitor", "clean filter", "process filter", "include"}


async def test_a_diff_has_a_summary_the_files_and_the_text(scene: Scene) -> None:
    (scene.project / "new.txt").write_text("new\n")
    assert await told(scene.project) == GitDiff(
        summary=" a.txt | 1 +\n 1 file changed, 1 insertion(+)",
        files=(FileDiff("a.txt", "modified", 1, 0),),
        untracked=("new.txt",),
        text="diff --git a/a.txt b/a.txt\nindex 5626abf..814f4a4 100644\n--- a/a.txt\n+++ b/a.txt\n"
        "@@ -1 +1,2 @@\n one\n+two\n",
        truncated=False,
    )


async def test_what_is_staged_is_told_apart(scene: Scene) -> None:
    (scene.project / "b.bin").write_bytes(b"\0\1")
    scene.git("add", "--all")
    scene.append("a.txt", "three\n")
    assert (await told(scene.project, staged=True)).files == (
        FileDiff("a.txt", "modified", 1, 0),
        FileDiff("b.bin", "added", None, None),
    )
    assert (await told(scene.project)).files == (FileDiff("a.txt", "modified", 1, 0),)


async def test_a_path_narrows_the_diff(scene: Scene) -> None:
    (scene.project / "folder").mkdir()
    for name in ("folder/b.txt", "*.txt"):
        (scene.project / name).write_text("b\n")
    scene.git("add", "--all")
    assert [file.path for file in (await told(scene.project, staged=True, path="folder")).files] == [
        "folder/b.txt"
    ]
    assert [file.path for file in (await told(scene.project, staged=True, path="*.txt")).files] == ["*.txt"]


async def test_a_project_inside_a_repository_sees_itself_alone(scene: Scene) -> None:
    inner = scene.project / "inner"
    inner.mkdir()
    (inner / "b.txt").write_text("b\n")
    (inner / "new.txt").write_text("new\n")
    scene.git("add", "inner/b.txt")
    found = await told(inner, staged=True)
    assert (found.files, found.untracked) == ((FileDiff("b.txt", "added", 1, 0),), ("new.txt",))
    assert (await told(inner)).files == ()


async def test_hostile_settings_above_the_project_do_not_run_either(scene: Scene) -> None:
    HOSTILE["fsmonitor"](scene)
    HOSTILE["clean filter"](scene)
    (scene.project / "inner").mkdir()
    (scene.project / "inner/b.txt").write_text("b\n")
    assert (await told(scene.project / "inner")).untracked == ("./",)
    assert scene.ran() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
async def test_a_repository_of_another_user_above_the_project_is_none(scene: Scene) -> None:
    (scene.project / "inner").mkdir()
    os.chown(scene.project / ".git", 12345, 12345)
    assert not is_repository(Workspace(str(scene.project / "inner")))
    assert (await told(scene.project)).files


async def test_a_linked_work_tree_that_its_repository_knows_is_told(scene: Scene) -> None:
    scene.git("worktree", "add", "-q", "../linked", "-b", "side")
    scene.config("core.fsmonitor")
    (scene.base / "linked/a.txt").write_text("other\n")
    assert (await told(scene.base / "linked")).files == (FileDiff("a.txt", "modified", 1, 1),)
    assert scene.ran() == []


async def test_a_work_tree_that_its_repository_does_not_know_is_refused(scene: Scene) -> None:
    scene.git("worktree", "add", "-q", "../linked", "-b", "side")
    (scene.base / "thief").mkdir()
    shutil.copy(scene.base / "linked/.git", scene.base / "thief/.git")
    with pytest.raises(Refused, match="points to another folder"):
        await told(scene.base / "thief")


async def test_a_repository_without_a_commit_shows_what_is_staged(tmp_path: Path, scene: Scene) -> None:
    young = tmp_path / "young"
    young.mkdir()
    scene.git("init", "-q", folder=young)
    (young / "b.txt").write_text("b\n")
    scene.git("add", ".", folder=young)
    assert (await told(young, staged=True)).files == (FileDiff("b.txt", "added", 1, 0),)
    assert (await told(young)).summary == ""


async def test_a_repository_with_long_hashes_is_read(tmp_path: Path, scene: Scene) -> None:
    modern = tmp_path / "modern"
    modern.mkdir()
    scene.git("init", "-q", "--object-format=sha256", folder=modern)
    (modern / "b.txt").write_text("b\n")
    scene.git("add", ".", folder=modern)
    scene.git("commit", "-q", "-m", "first", folder=modern)
    (modern / "b.txt").write_text("c\n")
    assert (await told(modern)).files == (FileDiff("b.txt", "modified", 1, 1),)


async def test_a_split_index_and_packed_references_are_read(scene: Scene) -> None:
    scene.git("update-index", "--split-index")
    scene.git("pack-refs", "--all")
    scene.git("gc", "-q")
    scene.git("add", "a.txt")
    assert (await told(scene.project, staged=True)).files == (FileDiff("a.txt", "modified", 1, 0),)


async def test_line_ends_count_as_the_repository_says(scene: Scene) -> None:
    (scene.project / "a.txt").write_bytes(b"one\r\n")
    assert (await told(scene.project)).files == (FileDiff("a.txt", "modified", 1, 1),)
    scene.config("core.autocrlf", "true")
    assert (await told(scene.project)).text == ""


async def test_nothing_in_the_repository_is_written(scene: Scene) -> None:
    os.utime(scene.project / "a.txt", (0, 0))
    git_folder = scene.project / ".git"
    before = {path: path.stat().st_mtime_ns for path in [git_folder, *git_folder.rglob("*")]}
    await told(scene.project)
    await told(scene.project, staged=True)
    assert {path: path.stat().st_mtime_ns for path in [git_folder, *git_folder.rglob("*")]} == before


async def test_names_of_any_kind_come_back_as_they_are(scene: Scene) -> None:
    HOSTILE["names with line breaks"](scene)
    names = {file.path for file in (await told(scene.project)).files}
    assert names >= {"a\nb.txt", "tab\t.txt", '"quoted".txt', ":100644 x.txt", ":(top)a"}


async def test_a_name_that_looks_like_an_option_is_a_name(scene: Scene) -> None:
    HOSTILE["names with dashes"](scene)
    found = await told(scene.project, path="--output=stray")
    assert [file.path for file in found.files] == ["--output=stray"]
    assert not (scene.project / "stray").exists()


async def test_a_huge_diff_is_cut_and_says_so(scene: Scene) -> None:
    HOSTILE["huge diff"](scene)
    found = await told(scene.project)
    assert found.truncated
    assert len(found.text) <= git.MAX_OUTPUT + 200
    assert found.text.splitlines()[-1].startswith("… the rest is left out")
    assert found.files == (FileDiff("a.txt", "modified", 400_001, 0),)


async def test_a_huge_file_does_not_hide_the_others(scene: Scene) -> None:
    HOSTILE["huge diff"](scene)
    names = [f"{where}{n}.txt" for where in "0z" for n in range(3)]
    for name in names:
        (scene.project / name).write_text("old\n")
    scene.git("add", *names)
    scene.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "more")
    for name in names:
        (scene.project / name).write_text(f"new of {name}\n")
    (scene.project / "z0.txt").write_text("one long line " * 100_000)
    found = await told(scene.project)

    assert found.truncated
    assert len(found.text) <= git.MAX_OUTPUT + 400
    assert all(name in found.summary for name in (*names, "a.txt"))
    assert all(f"+new of {name}\n" in found.text for name in names if name != "z0.txt")
    assert found.text.count("diff --git ") == len(names) + 1


async def test_ignored_files_are_not_new_ones(scene: Scene) -> None:
    (scene.project / ".gitignore").write_text("*.log\n")
    (scene.project / ".git/info/exclude").write_text("*.tmp\n")
    for name in ("x.log", "x.tmp", "x.new"):
        (scene.project / name).touch()
    assert (await told(scene.project)).untracked == (".gitignore", "x.new")


async def test_many_new_files_are_named_in_part(scene: Scene) -> None:
    for number in range(git.MAX_UNTRACKED + 1):
        (scene.project / f"new{number}").touch()
    found = await told(scene.project)
    assert (len(found.untracked), found.truncated) == (git.MAX_UNTRACKED, True)


async def test_a_folder_without_a_repository_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        await told(tmp_path)
    assert refused.value.name == "not_found"
    assert not is_repository(Workspace(str(tmp_path)))


async def test_without_git_it_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scene.outside))
    with pytest.raises(Refused, match="not installed"):
        await told(scene.project)


async def test_a_repository_that_holds_git_up_is_given_up_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(scene.project / ".gitattributes")
    monkeypatch.setattr(git_waits, "MAX_FOLDERS", 0)
    monkeypatch.setattr(git, "SECONDS", 0.5)
    with pytest.raises(Refused, match="took longer"):
        await told(scene.project)
    assert _children() == set()


async def test_a_cancelled_diff_leaves_no_process_and_no_folder(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = scene.project / ".gitattributes"
    os.mkfifo(pipe)
    monkeypatch.setattr(git_waits, "MAX_FOLDERS", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(scene.outside))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(told, scene.project)
        # Opening the pipe returns when git has opened its other end, so git is there to be ended.
        writer = await anyio.to_thread.run_sync(os.open, pipe, os.O_WRONLY)
        tasks.cancel_scope.cancel()
    os.close(writer)
    assert _children() == set()
    assert sorted(os.listdir(scene.outside)) == ["a.txt", "evil"]


def _children() -> set[str]:
    """The names of this process's children, of all its threads."""
    found = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    pids = [pid for pids in found for pid in pids]
    return {Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}
