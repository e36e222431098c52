"""An export, by the real git: the original tree and the patch make the result, and git counts the same lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.model.failures import Refused
from sidecar.workspace import diff, ledger
from tests.unit.workspace.environment import EDITS, PATHS, TREES, Desk, Files, edited

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    env = {**os.environ, **quiet, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(["git", *args], cwd=folder, input=stdin, env=env, capture_output=True, check=False)


def written(folder: Path, files: Files) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def found(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def applied_by_git(tree: Files, patch: bytes) -> Files:
    with tempfile.TemporaryDirectory() as name:
        written(Path(name), tree)
        if patch:
            done = git(Path(name), "apply", "--whitespace=nowarn", "-", stdin=patch)
            assert done.returncode == 0, done.stderr.decode()
        return found(Path(name))


@needs_git
@settings(max_examples=40, deadline=None)
@given(TREES, EDITS, st.sets(st.integers(0, 8)))
def test_git_makes_the_result_of_the_original_and_the_export(
    tree: Files, edits: list[tuple[str, bytes | None]], reverted: set[int]
) -> None:
    environment = Desk(tree)
    edited(environment, edits)
    environment.revert(*(patch for at, patch in enumerate(environment.patches) if at in reverted))

    assert (
        applied_by_git(tree, ledger.export_patches(environment.patches, environment.read))
        == environment.files
    )


@needs_git
def test_git_applies_an_export_where_a_file_becomes_a_folder_and_a_folder_a_file() -> None:
    environment = Desk({"a": b"1\n", "b/c": b"1\n"})
    edited(environment, [("a", None), ("a/x", b"2\n"), ("b/c", None), ("b", b"2\n")])

    assert (
        applied_by_git(
            {"a": b"1\n", "b/c": b"1\n"}, ledger.export_patches(environment.patches, environment.read)
        )
        == environment.files
    )


def test_an_export_is_sorted_and_leaves_out_what_ends_where_it_began() -> None:
    environment = Desk({"b": b"1\n"})
    edited(environment, [("z", b"1\n"), ("b", b"2\n"), ("a", b"1\n"), ("b", b"1\n")])

    assert ledger.export_patches(environment.patches, environment.read) == (
        diff.git_patch("a", None, b"1\n") + diff.git_patch("z", None, b"1\n")
    )
    assert ledger.changed_files(environment.patches, environment.read) == [("a", 1, 0), ("z", 1, 0)]
    assert ledger.export_patches([], environment.read) == b""


@needs_git
def test_an_export_holds_our_edits_and_not_the_one_that_a_person_made_between_them() -> None:
    lines = [b"%d\n" % number for number in range(30)]
    original = b"".join(lines)
    environment = Desk({"f": original})
    environment.edit("f", original.replace(b"2\n", b"two\n", 1))
    environment.put("f", environment.files["f"].replace(b"15\n", b"by hand\n"))
    environment.edit("f", environment.files["f"].replace(b"29\n", b"last\n"))
    result = applied_by_git({"f": original}, ledger.export_patches(environment.patches, environment.read))

    assert result == {"f": environment.files["f"].replace(b"by hand\n", b"15\n")}
    assert ledger.changed_files(environment.patches, environment.read) == [("f", 2, 2)]


@needs_git
def test_git_refuses_an_export_that_does_not_fit_without_a_persons_edit(tmp_path: Path) -> None:
    environment = Desk({"f": b"1\n"})
    environment.edit("f", b"2\n")
    environment.put("f", b"by hand\n")
    environment.edit("f", b"by hand\nand more\n")
    written(tmp_path, {"f": b"1\n"})

    done = git(tmp_path, "apply", "-", stdin=ledger.export_patches(environment.patches, environment.read))
    assert (done.returncode, found(tmp_path)) == (1, {"f": b"1\n"})


def test_an_export_says_when_bytes_were_not_kept() -> None:
    environment = Desk({"f": b"1"})
    patch = msgspec.structs.replace(environment.edit("f", b"2"), old_ref=None)

    with pytest.raises(Refused, match="The bytes of f were not stored"):
        ledger.export_patches([patch], environment.read)


UTF_16 = st.sampled_from(["\ufeffa\nb\n".encode("utf-16-le"), "\ufeffa\n".encode("utf-16-be")])


@pytest.mark.slow
@needs_git
@settings(max_examples=80, deadline=None)
@given(TREES, EDITS, st.none() | st.tuples(st.sampled_from(PATHS), UTF_16))
@example({"f": b"0\n1\n2\n3\n"}, [("f", b"1\n3\n0\n")], None)
@example({"f": b"a\n"}, [], ("f", "\ufeffa\n".encode("utf-16-le")))
def test_the_counts_are_those_of_git(
    tree: Files, edits: list[tuple[str, bytes | None]], last: tuple[str, bytes] | None
) -> None:
    edits = [*edits, last] if last else edits
    environment = Desk(tree)
    edited(environment, edits)
    with tempfile.TemporaryDirectory() as name:
        for side, files in (("old", tree), ("new", environment.files)):
            (Path(name) / side).mkdir()
            written(Path(name) / side, files)
        command = ("diff", "--no-index", "--numstat", "--no-renames", "-z", "old", "new")
        rows = git(Path(name), *command).stdout.decode().split("\0")
    counts = {}
    for row, old, new in zip(rows[0::3], rows[1::3], rows[2::3], strict=False):
        added, removed, _ = row.split("\t")
        path = (new if old == "/dev/null" else old).partition("/")[2]
        counts[path] = (None, None) if added == "-" else (int(added), int(removed))
    assert {
        path: (more, less) for path, more, less in ledger.changed_files(environment.patches, environment.read)
    } == counts
