"""A chat's open files: what brings them into view, their order, their limits, and what survives a restart."""

from __future__ import annotations

from tests.blackbox.work.workbench import Json, Workbench, call
from tests.support.sidecar import Sidecar


def names(bench: Workbench, listed: Json) -> list[str]:
    """The paths of a result, relative to the project."""
    top = bench.path(".") + "/"
    return [file["path"].removeprefix(top) for file in listed["files"]]


def files(sidecar: Sidecar) -> Json:
    return sidecar.call("files/list", chatId="c")


def test_a_chat_starts_with_no_open_files(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    sidecar.call("files/open", chatId="c", path="notes.txt")
    other = sidecar.call("chat/open", chatId="other", projectPath=str(bench.project))

    assert other["openFiles"] == []
    assert sidecar.call("files/list", chatId="other")["files"] == []


def test_files_that_tools_read_or_write_come_into_view(bench: Workbench) -> None:
    steps = [
        call("read_file", path="notes.txt"),
        call("write_file", path="new.md", content="x\n"),
        call("read_file", path="missing.txt"),
        call("glob", pattern="*.py"),
        call("read_file", path="src/add.py"),
        call("read_file", path="notes.txt"),
    ]
    sidecar = bench.start([*steps, "done"])
    sidecar.run("go", chatId="c")

    assert names(bench, files(sidecar)) == ["notes.txt", "src/add.py", "new.md"]
    by = {file["path"]: file["openedBy"] for file in files(sidecar)["files"]}
    assert by == {
        bench.path("notes.txt"): "read_file",
        bench.path("src/add.py"): "read_file",
        bench.path("new.md"): "write_file",
    }


def test_the_first_files_that_grep_finds_come_into_view(bench: Workbench) -> None:
    for number in range(14):
        (bench.project / f"f{number:02}.txt").write_text("needle\n")
    sidecar = bench.start([call("grep", pattern="needle"), "done"])
    sidecar.run("go", chatId="c")

    assert sorted(names(bench, files(sidecar))) == [f"f{number:02}.txt" for number in range(10)]


def test_order_times_and_pins_survive_a_restart_exactly(bench: Workbench) -> None:
    first = bench.start([call("read_file", path="src/add.py"), "done"])
    first.call("files/open", chatId="c", path="notes.txt")
    first.call("files/open", chatId="c", glob="src/*.py", pinned=True)
    (bench.project / "z.txt").write_text("z")
    first.call("files/open", chatId="c", path="z.txt")
    first.call("files/open", chatId="c", path="notes.txt")
    first.run("go", chatId="c")
    before = files(first)
    first.kill()

    second = bench.start(["hi"])
    assert second.call("chat/open", chatId="c")["openFiles"] == before["files"]
    assert files(second)["files"] == before["files"]
    assert names(bench, before) == ["src/add.py", "notes.txt", "z.txt"]


def test_the_least_recent_unpinned_file_makes_room(bench: Workbench) -> None:
    for number in range(30):
        (bench.project / f"f{number:02}.txt").write_text("x")
    sidecar = bench.start(["hi"])
    for number in range(26):
        sidecar.call("files/open", chatId="c", path=f"f{number:02}.txt", pinned=number == 0)

    listed = names(bench, files(sidecar))
    assert listed[0] == "f00.txt"
    assert (len(listed), listed[-1]) == (26, "f01.txt")
    sidecar.call("files/open", chatId="c", path="f26.txt")
    assert "f01.txt" not in names(bench, files(sidecar))


def test_the_eleventh_pin_is_refused_with_what_to_do(bench: Workbench) -> None:
    for number in range(11):
        (bench.project / f"f{number:02}.txt").write_text("x")
    sidecar = bench.start(["hi"])
    opened = sidecar.call("files/open", chatId="c", glob="f*.txt", pinned=True)
    assert opened["notPinned"] == [bench.path("f10.txt")]

    refusal = sidecar.refused("files/pin", chatId="c", path="f10.txt")
    assert (refusal.code, refusal.detail("limit")) == (-32010, 10)
    sidecar.call("files/unpin", chatId="c", path="f00.txt")
    assert sidecar.call("files/pin", chatId="c", path="f10.txt")["files"][0]["pinned"]


def test_a_file_that_cannot_be_shown_stays_listed_with_its_state(bench: Workbench) -> None:
    (bench.project / "gone.txt").write_text("x")
    (bench.project / "data.bin").write_bytes(b"\0\1")
    (bench.project / "huge.txt").write_bytes(b"x" * (1024 * 1024 + 1))
    sidecar = bench.start(["hi"])
    for name in ("gone.txt", "data.bin", "huge.txt", "notes.txt"):
        sidecar.call("files/open", chatId="c", path=name)
    (bench.project / "gone.txt").unlink()

    states = {file["path"].rpartition("/")[2]: file["state"] for file in files(sidecar)["files"]}
    assert states == {"gone.txt": "missing", "data.bin": "binary", "huge.txt": "too_large", "notes.txt": "ok"}
    assert "gone.txt" not in names(bench, sidecar.call("files/close", chatId="c", path="gone.txt"))


def test_wrong_paths_are_refused_by_name(bench: Workbench) -> None:
    sidecar = bench.start(["hi"])
    sidecar.call("chat/open", chatId="plain")
    assert sidecar.refused("files/open", chatId="c", path="../secret").code == -32017
    assert sidecar.refused("files/open", chatId="c", path="nothing").code == -32002
    assert sidecar.refused("files/open", chatId="c", glob="*.nothing").code == -32002
    assert sidecar.refused("files/open", chatId="c").code == -32602
    assert sidecar.refused("files/close", chatId="c", path="notes.txt").code == -32002
    assert sidecar.refused("files/open", chatId="plain", path="notes.txt").code == -32010
