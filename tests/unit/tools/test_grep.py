"""`grep` finds lines, with ripgrep and without it alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from sidecar.model.failures import Refused
from sidecar.tools.base import Intent, ToolError, ToolInput, ToolOutcome
from sidecar.tools.files import file_search
from sidecar.tools.files.file_search import MAX_FILE_BYTES, MAX_MATCHES, MAX_MATCHES_PER_FILE, find_ripgrep
from sidecar.tools.files.grep import MAX_LINE, MAX_OUTPUT, Grep
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out

T = TypeVar("T")
Find = Callable[[], str | None]


def no_ripgrep() -> str | None:
    return None


needs_ripgrep = pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is not installed")


@pytest.fixture(
    params=[
        pytest.param(find_ripgrep, marks=needs_ripgrep, id="ripgrep"),
        pytest.param(no_ripgrep, id="child"),
    ]
)
def grep(request: pytest.FixtureRequest) -> Grep:
    find: Find = request.param
    return Grep(find)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    put(folder, "a.py", "def one():\n    return 1\n\ndef two():\n    return 2\n")
    put(folder, "src/b.ts", "function One() {}\r\nnothing\r\n")
    put(folder, "src/deep/c.txt", "one more\nand one more\nthree")
    return folder


@pytest.fixture
def tool_context(project: Path) -> FolderContext:
    return FolderContext(Workspace(str(project)))


def put(folder: Path, name: str, data: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


async def found(grep: Grep, tool_context: FolderContext, pattern: str, **more: Any) -> list[str]:
    outcome = await carry_out(grep, {"pattern": pattern, **more}, tool_context)
    assert not outcome.failed
    return outcome.text.splitlines()


async def test_matches_come_with_path_and_line_and_are_recorded(
    grep: Grep, tool_context: FolderContext
) -> None:
    assert await carry_out(grep, {"pattern": "one"}, tool_context) == ToolOutcome(
        "a.py:1:def one():\nsrc/deep/c.txt:1:one more\nsrc/deep/c.txt:2:and one more",
        matched=("a.py", "src/deep/c.txt"),
    )


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({"pattern": "ONE\\(", "ignore_case": True}, ["a.py:1:def one():", "src/b.ts:1:function One() {}"]),
        ({"pattern": "^three$"}, ["src/deep/c.txt:3:three"]),
        ({"pattern": "\\{\\}$"}, ["src/b.ts:1:function One() {}"]),
        ({"pattern": "one", "glob": "*.py"}, ["a.py:1:def one():"]),
        ({"pattern": "(?i)one", "glob": "**/*.{ts,tsx}"}, ["src/b.ts:1:function One() {}"]),
        ({"pattern": "and", "glob": "/deep/*", "path": "src"}, ["src/deep/c.txt:2:and one more"]),
        ({"pattern": "and", "glob": "[a-c].txt"}, ["src/deep/c.txt:2:and one more"]),
        ({"pattern": "one", "path": "src"}, ["src/deep/c.txt:1:one more", "src/deep/c.txt:2:and one more"]),
        ({"pattern": "two", "path": "a.py"}, ["a.py:4:def two():"]),
        ({"pattern": "one", "path": "./src/../a.py"}, ["a.py:1:def one():"]),
        ({"pattern": "one", "output": "files"}, ["a.py", "src/deep/c.txt"]),
        ({"pattern": "one", "output": "count"}, ["a.py:1", "src/deep/c.txt:2"]),
        ({"pattern": "two", "output": "count", "path": "a.py"}, ["a.py:1"]),
        ({"pattern": "nowhere"}, ["No matches."]),
        ({"pattern": "two", "context": 1}, ["a.py-3-", "a.py:4:def two():", "a.py-5-    return 2"]),
        ({"pattern": "nothing", "context": 5}, ["src/b.ts-1-function One() {}", "src/b.ts:2:nothing"]),
    ],
    ids=str,
)
async def test_every_option_says_what_it_means(
    grep: Grep, tool_context: FolderContext, input: dict[str, Any], expected: list[str]
) -> None:
    assert await found(grep, tool_context, **input) == expected


async def test_lines_between_matches_are_parted(
    grep: Grep, tool_context: FolderContext, project: Path
) -> None:
    put(project, "x.md", "hit\nb\nc\nd\nhit\ne\nhit\n")
    put(project, "y.md", "hit\n")
    assert await found(grep, tool_context, "hit", context=1, glob="*.md") == [
        "x.md:1:hit",
        "x.md-2-b",
        "--",
        "x.md-4-d",
        "x.md:5:hit",
        "x.md-6-e",
        "x.md:7:hit",
        "--",
        "y.md:1:hit",
    ]


async def test_names_and_patterns_of_any_kind_are_taken_as_they_are(
    grep: Grep, tool_context: FolderContext, project: Path
) -> None:
    for name in ("-e", "--files", "new\nline", "col:on:3:x", "--", "-", "<stdin>"):
        put(project, f"odd/{name}", "--version\n")
    assert await found(grep, tool_context, "--version", path="odd", output="count") == [
        "odd/-:1",
        "odd/--:1",
        "odd/--files:1",
        "odd/-e:1",
        "odd/<stdin>:1",
        "odd/col:on:3:x:1",
        "odd/new",
        "line:1",
    ]
    assert await found(grep, tool_context, "-version", path="odd/-e") == ["odd/-e:1:--version"]
    assert len(await found(grep, tool_context, "--version", path="odd")) == 8


async def test_a_name_that_is_no_text_is_found(
    grep: Grep, tool_context: FolderContext, project: Path
) -> None:
    put(project, os.fsdecode(b"odd\xff.txt"), b"hit \xff\n")
    assert await found(grep, tool_context, "hit") == ["odd\udcff.txt:1:hit \ufffd"]


async def test_hidden_files_are_left_out_unless_their_folder_is_asked_for(
    grep: Grep, tool_context: FolderContext, project: Path
) -> None:
    (project / ".gitignore").write_text("*.txt\n/out/\n")
    for name in (".git/config", "out/x.py", "out/.gitignore", ".github/ci.yml", ".ignore", "sub/.git/x"):
        put(project, name, "one\n" if name != ".ignore" else "*.py\none\n")
    assert await found(grep, tool_context, "one", output="files") == [".github/ci.yml", ".ignore", "a.py"]
    assert await found(grep, tool_context, "one", output="files", glob="*.txt") == ["No matches."]
    assert await found(grep, tool_context, "one", output="files", path="out") == [
        "out/.gitignore",
        "out/x.py",
    ]


@pytest.mark.sampled(1)
async def test_binary_and_very_large_files_are_left_out(
    grep: Grep, tool_context: FolderContext, project: Path
) -> None:
    put(project, "start.bin", b"\0hit\n")
    put(project, "end.bin", b"hit\n" + b"x\n" * 200_000 + b"\0")
    put(project, "wide.txt", "hit\n".encode("utf-16"))
    put(project, "large.txt", b"hit\n" + b"x" * MAX_FILE_BYTES)
    put(project, "fits.txt", b"hit\n" + b"x\n" * 1_000_000)
    assert await found(grep, tool_context, "hit") == ["fits.txt:1:hit"]
    with pytest.raises(ToolError, match="does not look into it"):
        await found(grep, tool_context, "hit", path="large.txt")
    assert await found(grep, tool_context, "hit", path="end.bin") == ["No matches."]


async def test_long_lines_are_cut(grep: Grep, tool_context: FolderContext, project: Path) -> None:
    put(project, "min.js", "x" * 100_000 + "hit")
    assert await found(grep, tool_context, "hit") == [f"min.js:1:{'x' * MAX_LINE}…"]


async def test_what_is_left_out_is_counted(grep: Grep, tool_context: FolderContext, project: Path) -> None:
    for number in range(6):
        put(project, f"many/{number}", "hit\n" * (MAX_MATCHES_PER_FILE + 7))
    lines = await found(grep, tool_context, "hit")
    assert lines[MAX_MATCHES_PER_FILE] == "many/0: … 7 more matches"
    assert sum(line.endswith(":hit") for line in lines) == MAX_MATCHES
    assert lines[-1] == f"… {2 * (MAX_MATCHES_PER_FILE + 7)} more matches in other files; ask more narrowly"


async def test_many_files_are_counted(grep: Grep, tool_context: FolderContext, project: Path) -> None:
    for number in range(MAX_MATCHES + 3):
        put(project, f"many/{number:03}", "hit\n")
    lines = await found(grep, tool_context, "hit", output="files")
    assert (len(lines), lines[-1]) == (MAX_MATCHES + 1, "… 3 more files")


async def test_an_answer_has_a_bound(grep: Grep, tool_context: FolderContext, project: Path) -> None:
    for number in range(5):
        put(project, f"many/{number}", (("x" * MAX_LINE + "\n") * 5 + "hit\n") * 10)
    outcome = await carry_out(grep, {"pattern": "hit", "context": 5}, tool_context)
    assert len(outcome.text) < MAX_OUTPUT + 1000
    assert outcome.text.endswith(
        f"… {10 * (5 - len(outcome.matched))} more matches in other files; ask more narrowly"
    )


async def test_the_database_is_never_shown(grep: Grep, project: Path, tmp_path: Path) -> None:
    put(tmp_path, "chats.db", "one secret\n")
    os.link(tmp_path / "chats.db", project / "b.db")
    own = os.stat(tmp_path / "chats.db")
    tool_context = FolderContext(Workspace(str(project), forbidden=lambda: {(own.st_dev, own.st_ino)}))
    for output in ("lines", "files", "count"):
        text = (await carry_out(grep, {"pattern": "one", "output": output}, tool_context)).text
        assert "a.py" in text
        assert "b.db" not in text
    with pytest.raises(Refused, match="own database"):
        await carry_out(grep, {"pattern": "one", "path": "b.db"}, tool_context)


async def test_links_are_not_followed_out(
    grep: Grep, tool_context: FolderContext, project: Path, tmp_path: Path
) -> None:
    put(tmp_path, "outside/secret.txt", "one secret\n")
    os.symlink("../outside", project / "folder")
    os.symlink("../outside/secret.txt", project / "link.txt")
    os.symlink("src", project / "inside")
    os.mkfifo(project / "pipe.txt")
    assert await found(grep, tool_context, "one", output="files") == ["a.py", "src/deep/c.txt"]
    assert await found(grep, tool_context, "one", output="files", path="inside") == ["inside/deep/c.txt"]
    for path in ("folder", "link.txt", "folder/secret.txt", "../outside", "pipe.txt", "none"):
        with pytest.raises(Refused):
            await found(grep, tool_context, "one", path=path)


@needs_ripgrep
async def test_a_file_that_becomes_a_link_while_ripgrep_runs_shows_nothing(
    project: Path, tmp_path: Path
) -> None:
    put(tmp_path, "outside/secret.txt", "def one secret\n")

    class Swapping(FolderContext):
        async def block(self, function: Callable[..., T], *args: Any) -> T:
            if function.__name__ == "_lines":
                os.unlink(project / "a.py")
                os.symlink("../outside/secret.txt", project / "a.py")
            return await super().block(function, *args)

    outcome = await carry_out(Grep(), {"pattern": "def"}, Swapping(Workspace(str(project))))
    assert outcome == ToolOutcome("No matches.")


async def test_files_in_a_further_folder_are_found(grep: Grep, project: Path, tmp_path: Path) -> None:
    put(tmp_path, "extra/x.py", "one\n")
    tool_context = FolderContext(Workspace(str(project), [str(tmp_path / "extra")]))
    extra = tool_context.workspace.resolve(str(tmp_path / "extra")).shown
    assert await found(grep, tool_context, "one", path=extra) == [f"{extra}/x.py:1:one"]


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{2,1}", "\\"])
async def test_a_pattern_that_is_none_is_told_in_words(
    grep: Grep, tool_context: FolderContext, pattern: str
) -> None:
    with pytest.raises(ToolError, match=r"pattern cannot be parsed: .+"):
        await found(grep, tool_context, pattern)


@pytest.mark.parametrize(
    "input",
    [
        {},
        {"pattern": ""},
        {"pattern": "a\nb"},
        {"pattern": "a\0"},
        {"pattern": "\ud800"},
        {"pattern": "a" * 3000},
        {"pattern": "a", "output": "all"},
        {"pattern": "a", "context": 6},
        {"pattern": "a", "context": -1},
        {"pattern": "a", "glob": ""},
        {"pattern": "a", "glob": "[a"},
        {"pattern": "a", "ignore_case": 1},
    ],
    ids=str,
)
async def test_a_call_that_is_wrong_is_refused_before_leave_is_asked(
    grep: Grep, tool_context: FolderContext, input: dict[str, Any]
) -> None:
    with pytest.raises(ToolError):
        await grep.prepare(ToolInput(input), tool_context)


async def test_leave_is_asked_for_the_path(grep: Grep, tool_context: FolderContext) -> None:
    assert (await grep.prepare(ToolInput({"pattern": "x", "path": "./src"}), tool_context)).intent == Intent(
        "read", "src"
    )


async def test_a_pattern_that_blows_up_is_ended_and_told(
    tool_context: FolderContext, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, "bomb.txt", "a" * 60 + "b\n")
    monkeypatch.setattr(file_search, "SECONDS", 1.0)
    outcome = await carry_out(Grep(no_ripgrep), {"pattern": "(a+)+$"}, tool_context)
    assert outcome.failed
    assert "simpler pattern" in outcome.text
    assert _children() == []


@needs_ripgrep
async def test_ripgrep_is_not_impressed_by_such_a_pattern(tool_context: FolderContext, project: Path) -> None:
    put(project, "bomb.txt", "a" * 60 + "b\n")
    assert await found(Grep(), tool_context, "^(a+)+$") == ["No matches."]


async def test_a_cancelled_search_leaves_no_process(project: Path) -> None:
    put(project, "bomb.txt", "a" * 60 + "b\n")
    begun = anyio.Event()

    class Watching(FolderContext):
        async def block(self, function: Callable[..., T], *args: Any) -> T:
            result = await super().block(function, *args)
            if function.__name__ == "_batch":
                begun.set()
            return result

    tool_context = Watching(Workspace(str(project)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carry_out, Grep(no_ripgrep), {"pattern": "(a+)+$"}, tool_context)
        await begun.wait()
        assert _children() != []
        tasks.cancel_scope.cancel()
    assert _children() == []


@pytest.mark.sampled(1)
@needs_ripgrep
@pytest.mark.parametrize("output", ["lines", "files", "count"])
async def test_both_ways_answer_the_same_of_a_real_tree(output: str) -> None:
    tool_context = FolderContext(Workspace(str(Path(__file__).parents[3])))
    for more in ({}, {"glob": "tests/**/*.py"}, {"path": "sidecar/tools", "context": 2}):
        input = {"pattern": r"def \w+_s\w*\(", "output": output, **more}
        assert await carry_out(Grep(), input, tool_context) == await carry_out(
            Grep(no_ripgrep), input, tool_context
        )


def _children() -> list[str]:
    """The processes that this one has started, by any of its threads."""
    return [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
