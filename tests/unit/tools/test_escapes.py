"""By no path of the corpus does a tool read, list, run in or change what is outside; a careless workspace is caught."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import ToolError, ToolInput
from sidecar.tools.files.glob import GlobTool
from sidecar.tools.files.grep import Grep
from tests.unit.tools.escaping import (
    GIT,
    HEADERS,
    MARK,
    READING,
    WRITING,
    Account,
    KnowingHands,
    Way,
    carry_out,
    scene,
    trial,
)
from tests.unit.workspace.corpus import ESCAPES, Verdict, escapes
from tests.unit.workspace.races import SWAP_AT_ONCE, Outcome, often, swapping
from tests.unit.workspace.trees import SECRET, Make, Tree, broken, by_hand, careful, outside

both = pytest.mark.parametrize("make", [careful, by_hand])
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
at_once = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="names are not exchanged at once here"
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return scene(tmp_path)


@pytest.mark.sampled(1)
@both
@pytest.mark.parametrize("way", READING)
async def test_no_escape_shows_a_reading_tool_what_is_outside(tree: Tree, make: Make, way: str) -> None:
    assert len(escapes(tree)) >= 500
    assert await trial(tree, make(tree), READING[way], escapes(tree)) == Account()


@pytest.mark.sampled(1)
@both
@pytest.mark.parametrize("way", WRITING)
async def test_no_escape_lets_an_edit_tool_change_what_is_outside(tree: Tree, make: Make, way: str) -> None:
    assert await trial(tree, make(tree), WRITING[way], escapes(tree)) == Account()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", HEADERS)
async def test_no_diff_changes_what_its_header_names_outside(tree: Tree, way: str) -> None:
    assert await trial(tree, careful(tree), HEADERS[way], escapes(tree)) == Account()


CLAIMED = ["evil/secret.txt", "out_dir/secret.txt", "a/up/sub/secret.txt", "out_file", "chain1"]
"""Files of the project in the index, which on disk lead out."""


@pytest.fixture
def repository(tree: Tree) -> Tree:
    git(tree, "init", "-q")
    git(tree, "add", "inside.txt", "a/b/deep.txt", "out_rel")
    blob = git(tree, "hash-object", "-w", "inside.txt")
    for path in CLAIMED:
        git(tree, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    (tree.root / "inside.txt").write_bytes(b"changed")
    return tree


@needs_git
async def test_git_tells_nothing_of_what_its_index_claims_to_be_inside(repository: Tree) -> None:
    told: list[str] = []
    await carry_out(GIT.tool(), {}, KnowingHands(careful(repository)), repository, told)
    assert [path for path in (*CLAIMED, "inside.txt") if f"diff --git a/{path} " not in "".join(told)] == []
    paths = dict.fromkeys([".", *CLAIMED], ("denied", "outside"))
    assert await trial(repository, careful(repository), GIT, paths) == Account()


@needs_git
@pytest.mark.slow
async def test_no_escape_lets_git_tell_what_is_outside(repository: Tree) -> None:
    assert await trial(repository, careful(repository), GIT, escapes(repository)) == Account()


PATTERNS = """\
../*|../**|../outside/*|/etc/*|/etc/passwd|**/../..|**/../../outside/*|/../outside/*|./../outside/*|/**|//etc/*|\
{root}/../outside/*|{outside}/*|{outside}/**|{root}/../**|{root}_evil/*|../project_evil/*|out_dir/*|out_dir/**|\
a/up/*|evil/**|parent/outside/*|top/etc/*|proc_root/**|*/secret.txt|**/only_*|a/../../outside/*|\
{{../outside/*,inside.txt}}|{{..,a}}/**|[.][.]/outside/*|.?/outside/*|..*/**|\\../outside/*|~/*|$HOME/*|%2e%2e/*|\
..\\outside\\*|hard*|**/hard"""


def patterns(tree: Tree) -> dict[str, Verdict]:
    said = [text.format(root=tree.root, outside=tree.outside) for text in PATTERNS.split("|")]
    return dict.fromkeys(said, ("not_found", None))


SEARCHES = {
    "glob": Way(GlobTool, lambda pattern: {"pattern": pattern}, strict=False),
    "glob in a folder": Way(GlobTool, lambda pattern: {"pattern": pattern, "path": "a"}, strict=False),
    "grep": Way(Grep, lambda glob: {"pattern": "secret|root", "glob": glob}, strict=False),
    "grep of files": Way(
        Grep, lambda glob: {"pattern": "secret|root", "glob": glob, "output": "files"}, strict=False
    ),
    "grep without ripgrep": Way(
        lambda: Grep(lambda: None), lambda glob: {"pattern": "secret|root", "glob": glob}, strict=False
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", SEARCHES)
async def test_no_pattern_finds_what_is_outside(tree: Tree, way: str) -> None:
    assert await trial(tree, careful(tree), SEARCHES[way], patterns(tree)) == Account()


async def test_a_glob_of_any_escape_names_only_what_is_in_the_project(tree: Tree) -> None:
    found: set[str] = set()
    for pattern in [*patterns(tree), *ESCAPES]:
        try:
            ready = await GlobTool().prepare(ToolInput({"pattern": pattern}), KnowingHands(careful(tree)))
        except ToolError:
            continue
        text = (await ready.run()).text
        found.update([] if text.startswith("No file matches") else text.split("\n"))
    assert {"inside.txt", "a/b/deep.txt", "out_file"} <= found <= names_inside(tree)


DONE = "done"
ROUNDS = 100
RACERS: dict[str, tuple[Way, int]] = {
    "read_file": (READING["read_file"], 150),
    "list_dir": (READING["list_dir"], 150),
    "glob": (READING["glob"], 100),
    "grep": (READING["grep"], 20),
    "grep without ripgrep": (READING["grep without ripgrep"], 20),
    "run_command": (READING["run_command"], 20),
}
"""Each with its rounds: a process costs as much as a hundred reads."""


@pytest.fixture
def racing(tmp_path: Path) -> Tree:
    """`door` is a folder that becomes a link to one outside, in which a file of the same name is secret."""
    tree = scene(tmp_path)
    (tree.root / "door").mkdir()
    (tree.root / "door/secret.txt").write_bytes(b"no secret")
    tree.link("other", "../outside")
    return tree


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RACERS)
def test_a_folder_exchanged_for_a_link_shows_no_tool_what_is_outside(racing: Tree, name: str) -> None:
    way, rounds = RACERS[name]
    path = "door/secret.txt" if name == "read_file" else "door"
    workspace = careful(racing)
    with swapping(racing.root, "door", "other"):
        seen = often(lambda: once(racing, way, path, KnowingHands(workspace)), {DONE, "denied"}, rounds)
    refusals = {"denied", "not_found"} | ({"wrong"} if name == "read_file" else set())
    assert {DONE, "denied"} <= set(seen) <= {DONE, *refusals}


@pytest.mark.sampled(1)
@at_once
@pytest.mark.parametrize(("way", "path"), [("write_file", "{}/new.txt"), ("insert_line", "{}.txt")])
def test_a_folder_exchanged_for_a_link_lets_no_tool_write_outside(racing: Tree, way: str, path: str) -> None:
    for number, folder in itertools.product(range(ROUNDS), (racing.root / "door", racing.outside)):
        (folder / f"{number}.txt").write_bytes(SECRET)
    before, workspace, numbers = outside(racing), careful(racing), itertools.count()

    def attempt() -> Outcome:
        named = f"door/{path.format(next(numbers) % ROUNDS)}"
        ended = once(racing, WRITING[way], named, KnowingHands(workspace))
        return DONE if ended == "leaked" else ended  # the same bytes are inside

    with swapping(racing.root, "door", "other", script=SWAP_AT_ONCE):
        seen = often(attempt, {DONE, "denied"}, ROUNDS)
    assert {DONE, "denied"} <= set(seen) <= {DONE, "denied", "wrong"}
    assert outside(racing) == before


def test_the_race_catches_a_workspace_that_checks_and_then_opens(racing: Tree) -> None:
    workspace = broken(racing)
    with swapping(racing.root, "door", "other"):
        seen = often(
            lambda: once(racing, READING["read_file"], "door/secret.txt", KnowingHands(workspace)),
            {"leaked"},
            1,
        )
    assert seen["leaked"] > 0


CAUGHT = {
    "read_file": (READING, {"evil/secret.txt", "../project_evil/secret.txt", "hard"}),
    "list_dir": (READING, {"evil", "../project_evil"}),
    "glob": (READING, {"evil", "../project_evil"}),
    "run_command": (READING, {"evil", "../project_evil"}),
    "insert_line": (WRITING, {"../project_evil/secret.txt", "hard"}),
    "patch_file to delete": (WRITING, {"../project_evil/secret.txt", "hard"}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", CAUGHT)
async def test_the_corpus_catches_a_workspace_that_compares_real_paths(tree: Tree, way: str) -> None:
    ways, caught = CAUGHT[way]
    account = await trial(tree, broken(tree), ways[way], escapes(tree))
    assert caught <= account.told
    assert caught <= account.done
    assert account.changed is (ways is WRITING)
    assert account.opened


async def test_the_corpus_catches_a_workspace_that_makes_files_outside(tree: Tree) -> None:
    account = await trial(tree, broken(tree), WRITING["write_file"], escapes(tree))
    assert {"../project_evil/new.txt", "evil/new.txt"} & account.done
    assert account.changed


def once(tree: Tree, way: Way, path: str, context: KnowingHands) -> Outcome:
    """One call from a thread that has no loop: how it ended, and whether it told what is outside."""
    told: list[str] = []
    ended = DONE
    try:
        anyio.run(carry_out, way.tool(), way.input(path), context, tree, told)
    except Refused as refused:
        told.append(str(refused))
        ended = refused.name
    except ToolError:
        ended = "wrong"
    return "leaked" if any(text in piece for piece in told for text in (SECRET.decode(), MARK)) else ended


def names_inside(tree: Tree) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), tree.root)
        for folder, folders, files in os.walk(tree.root)
        for name in (*folders, *files)
    }


def git(tree: Tree, *words: str) -> str:
    run = subprocess.run(["git", *words], cwd=tree.root, check=True, capture_output=True, text=True)
    return run.stdout.strip()
