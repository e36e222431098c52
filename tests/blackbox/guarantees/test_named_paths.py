"""Paths that a client names: no file is replaced unasked, and none of the sidecar's own is opened or written.

Each attempt is followed by a look from another process at the locks that SQLite holds on the database: closing any
descriptor of the file, by whatever name it was opened, would have dropped them.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.sidecar import Refusal, Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and locks of POSIX")

OWN = ("sidecar.db", "sidecar.db-wal", "sidecar.db-shm", "sidecar.db-lock", "sidecar.db-reserve")
KERNEL = ("/proc/self/environ", "/proc/self/mem", "/proc/kmsg", "/sys/kernel/mm/transparent_hugepage/enabled")
WRITERS: dict[str, dict[str, Any]] = {
    "chat/export": {"chatId": "c"},
    "patches/export": {"chatId": "c"},
    "doctor/report": {},
}

Shape = Callable[[Path, Path], str]
"""Makes a path in a folder that leads to a file."""


def _chain(folder: Path, file: Path) -> str:
    (folder / "one").symlink_to(file)
    (folder / "two").symlink_to("one")
    (folder / "three").symlink_to(folder / "two")
    return str(folder / "three")


def _hard(folder: Path, file: Path) -> str:
    os.link(file, folder / "hard")
    return str(folder / "hard")


def _through_folder(folder: Path, file: Path) -> str:
    (folder / "linked").symlink_to(file.parent)
    return str(folder / "linked" / file.name)


SHAPES: dict[str, Shape] = {
    "name": lambda folder, file: str(file),
    "dots": lambda folder, file: f"{folder}/../{folder.name}/{os.path.relpath(file, folder)}",
    "hard link": _hard,
    "chain of links": _chain,
    "link to its folder": _through_folder,
}


@pytest.fixture
def folder(spawn: Spawner) -> Path:
    made = spawn.folder / "named"
    made.mkdir()
    return made


@pytest.fixture
def sidecar(spawn: Spawner) -> Iterator[Sidecar]:
    sidecar = spawn()
    sidecar.run("hello", chatId="c")
    yield sidecar
    assert sidecar.run("again", chatId="c")["data"]["reason"] == "end_turn"


def locked(spawn: Spawner) -> bool:
    """Whether the sidecar still holds SQLite's locks on its database."""
    return is_locked(spawn.data_dir / "sidecar.db")


def is_locked(database: Path) -> bool:
    with database.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
        except BlockingIOError:
            return True
    return False


def attach(sidecar: Sidecar, path: str, kind: str = "image") -> Refusal:
    return sidecar.refused("prompt/send", chatId="c", promptId="p", content=[{"type": kind, "path": path}])


def read_ways(sidecar: Sidecar, path: str) -> dict[str, Refusal]:
    """Each way in which a client has a file read."""
    return {
        "import": sidecar.refused("chat/import", chatId="new", path=path),
        "image": attach(sidecar, path),
        "audio": attach(sidecar, path, "audio"),
    }


def told(refusal: Refusal) -> tuple[int, str | None]:
    return refusal.code, refusal.data.get("reason")


def litter(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".sidecar-*")]


def own_paths(spawn: Spawner, folder: Path, shape: str) -> list[str]:
    """A path of that shape to each of the sidecar's own files."""
    paths = []
    for name in OWN:
        (folder / f"to {name}").mkdir()
        paths.append(SHAPES[shape](folder / f"to {name}", spawn.data_dir / name))
    return paths


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_none_of_our_own_files_is_read(sidecar: Sidecar, spawn: Spawner, folder: Path, shape: str) -> None:
    for path in own_paths(spawn, folder, shape):
        assert locked(spawn)
        for refusal in read_ways(sidecar, path).values():
            assert told(refusal) == (-32602, "own_file")
    assert locked(spawn)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_none_of_our_own_files_is_written(sidecar: Sidecar, spawn: Spawner, folder: Path, shape: str) -> None:
    inodes = {own: (spawn.data_dir / own).stat().st_ino for own in OWN}
    for path in own_paths(spawn, folder, shape):
        for method, params in WRITERS.items():
            for overwrite in (False, True):
                refusal = sidecar.refused(method, path=path, overwrite=overwrite, **params)
                assert told(refusal) == (-32602, "own_file")
    assert {own: (spawn.data_dir / own).stat().st_ino for own in OWN} == inodes
    assert litter(spawn.folder) == []
    assert locked(spawn)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["sidecar.db-journal", "sidecar.db.salvaged", "mine.txt", "below/mine.txt"])
def test_nothing_new_is_written_into_our_data_folder(sidecar: Sidecar, spawn: Spawner, name: str) -> None:
    (spawn.data_dir / "below").mkdir()
    for method, params in WRITERS.items():
        refusal = sidecar.refused(method, path=str(spawn.data_dir / name), overwrite=True, **params)
        assert told(refusal) == (-32602, "own_file")
    assert not (spawn.data_dir / name).exists()


@pytest.mark.sampled(1)
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
@pytest.mark.parametrize("spelling", ["/proc/self/fd/{}", "/dev/fd/{}", "/proc/{pid}/fd/{}"])
def test_no_descriptor_of_our_own_is_read_or_written(sidecar: Sidecar, spawn: Spawner, spelling: str) -> None:
    """Each number is tried: those of the database, the pipes, and what is none."""
    numbers = {
        int(name): os.readlink(f"/proc/{sidecar.pid}/fd/{name}")
        for name in os.listdir(f"/proc/{sidecar.pid}/fd")
    }
    ours = {number for number, target in numbers.items() if "sidecar.db" in target}
    assert ours
    for number in numbers:
        path = spelling.format(number, pid=sidecar.pid)
        for refusal in read_ways(sidecar, path).values():
            assert refusal.code == -32602
            assert number not in ours or refusal.data["reason"] == "own_file"
        for method, params in WRITERS.items():
            assert sidecar.refused(method, path=path, overwrite=True, **params).code == -32602
    assert locked(spawn)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("model", ["local:{}", "scripted:{}"])
def test_a_models_name_opens_none_of_our_own_files(
    sidecar: Sidecar, spawn: Spawner, folder: Path, model: str, link: str
) -> None:
    for at, target in enumerate((spawn.data_dir / "sidecar.db", spawn.data_dir / "sidecar.db-wal")):
        path = folder / f"{at}.gguf"
        getattr(path, link)(target)
        chat = f"m{at}"
        answer = sidecar.answer(sidecar.ask("chat/open", chatId=chat, config={"model": model.format(path)}))
        if "result" in answer:
            sidecar.answer(sidecar.ask("prompt/send", chatId=chat, content=[{"type": "text", "text": "go"}]))
            sidecar.call("turn/cancel", chatId=chat)
    assert locked(spawn)


def test_a_projects_settings_that_lead_to_our_database_are_not_opened(
    sidecar: Sidecar, spawn: Spawner, folder: Path
) -> None:
    (folder / ".sidecar").mkdir()
    (folder / ".sidecar" / "config.toml").symlink_to(spawn.data_dir / "sidecar.db")
    sidecar.call("project/trust", path=str(folder), trusted=True)
    sidecar.answer(sidecar.ask("settings/read", projectPath=str(folder)))
    sidecar.answer(sidecar.ask("chat/open", chatId="p", projectPath=str(folder)))
    assert locked(spawn)


def _special(folder: Path) -> dict[str, str]:
    os.mkfifo(folder / "fifo")
    (folder / "linked fifo").symlink_to("fifo")
    (folder / "folder").mkdir()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "socket"))
    server.close()
    names = ("fifo", "linked fifo", "folder", "socket")
    return {name: str(folder / name) for name in names} | {
        name: name for name in ("/dev/null", "/dev/full", "/dev/zero", "/dev/tty", "/dev/stdin", "/")
    }


def test_only_regular_files_are_read_and_nothing_waits(sidecar: Sidecar, folder: Path) -> None:
    for path in [*_special(folder).values(), *(path for path in KERNEL if os.path.exists(path))]:
        for refusal in read_ways(sidecar, path).values():
            assert refusal.code == -32602
            assert refusal.data["reason"] in ("kind", "io", "permission")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("overwrite", [False, True])
def test_only_regular_files_are_replaced(sidecar: Sidecar, folder: Path, overwrite: bool) -> None:
    special = _special(folder)
    before = {path: os.lstat(path) for path in special.values()}
    for path in (*special.values(), *KERNEL, "/proc/self/new", f"{folder}/", f"{folder}/."):
        for method, params in WRITERS.items():
            refusal = sidecar.refused(method, path=path, overwrite=overwrite, **params)
            assert refusal.code == -32602 or (refusal.code == -32003 and os.path.islink(path))
    after = {path: os.lstat(path) for path in special.values()}
    assert [os.path.samestat(before[path], after[path]) for path in before] == [True] * len(before)
    assert litter(folder) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", WRITERS)
def test_a_file_that_is_there_is_replaced_only_when_asked(
    sidecar: Sidecar, folder: Path, method: str
) -> None:
    path = folder / "kept.txt"
    path.write_text("mine\n")
    path.chmod(0o640)
    refusal = sidecar.refused(method, path=str(path), **WRITERS[method])
    assert told(refusal) == (-32003, "exists")
    assert str(path) in str(refusal)
    assert "overwrite: true" in str(refusal)
    assert (refusal.data["params"], path.read_text()) == ({"path": str(path), "field": "overwrite"}, "mine\n")

    twin = folder / "twin"
    os.link(path, twin)
    done = sidecar.call(method, path=str(path), overwrite=True, **WRITERS[method])
    assert (done["bytes"], stat.S_IMODE(path.stat().st_mode)) == (path.stat().st_size, 0o640)
    # Another name of the old file has the old bytes: it was replaced, not written into.
    assert twin.read_text() == "mine\n"
    assert litter(folder) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", WRITERS)
def test_a_new_file_is_private(sidecar: Sidecar, folder: Path, method: str) -> None:
    sidecar.call(method, path=str(folder / "new"), **WRITERS[method])
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o600
    assert os.listdir(folder) == ["new"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("to", ["file", "nothing", "itself"])
@pytest.mark.parametrize("method", WRITERS)
def test_a_link_in_the_files_place_is_neither_followed_nor_replaced(
    sidecar: Sidecar, folder: Path, method: str, to: str
) -> None:
    (folder / "file").write_text("mine\n")
    link = folder / "link"
    link.symlink_to("link" if to == "itself" else to)
    assert sidecar.refused(method, path=str(link), **WRITERS[method]).code in (-32003, -32602)
    refusal = sidecar.refused(method, path=str(link), overwrite=True, **WRITERS[method])
    assert told(refusal) == (-32602, "link")
    assert ((folder / "file").read_text(), sorted(os.listdir(folder))) == ("mine\n", ["file", "link"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("relative.txt", "name"),
        ("~/home.txt", "name"),
        ("", "name"),
        ("{}/with\0nul", "name"),
        ("{}/" + "x" * 256, "name"),
        ("{}/" + "x/" * 3000 + "y", "name"),
        ("{}/missing/file", "not_found"),
        ("{}/file/below", "kind"),
        ("{}/..", "kind"),
    ],
)
def test_a_path_that_names_no_place_says_why(sidecar: Sidecar, folder: Path, path: str, reason: str) -> None:
    (folder / "file").write_text("mine\n")
    for method, params in WRITERS.items():
        refusal = sidecar.refused(method, path=path.format(folder), overwrite=True, **params)
        assert told(refusal) == (-32602, reason)
    assert all(refusal.code == -32602 for refusal in read_ways(sidecar, path.format(folder)).values())
    assert os.listdir(folder) == ["file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_what_the_user_may_not_write_stays(sidecar: Sidecar, folder: Path) -> None:
    path = folder / "file"
    path.write_text("mine\n")
    path.chmod(0o400)
    for method, params in WRITERS.items():
        refusal = sidecar.refused(method, path=str(path), overwrite=True, **params)
        assert told(refusal) == (-32602, "permission")
    assert path.read_text() == "mine\n"


def test_the_data_folder_of_another_sidecar_is_only_written_when_asked(
    sidecar: Sidecar, spawn: Spawner
) -> None:
    other = spawn.folder / "other"
    spawn(data_dir=other).run("hello", chatId="c")
    before = (other / "sidecar.db").read_bytes()
    assert sidecar.refused("chat/export", chatId="c", path=str(other / "sidecar.db")).code == -32003
    assert attach(sidecar, str(other / "none")).code == -32602
    assert (other / "sidecar.db").read_bytes() == before
    assert locked(spawn)


def _asked(method: str, **params: Any) -> Callable[[Sidecar, str], Json]:
    return lambda sidecar, path: sidecar.answer(sidecar.ask(method, path=path, chatId="c", **params))


def _attached(kind: str) -> Callable[[Sidecar, str], Json]:
    def send(sidecar: Sidecar, path: str) -> Json:
        content = [{"type": kind, "path": path}]
        return sidecar.answer(sidecar.ask("prompt/send", chatId="c", promptId="p", content=content))

    return send


WAYS = {
    "import": lambda sidecar, path: sidecar.answer(sidecar.ask("chat/import", path=path, chatId="new")),
    "image": _attached("image"),
    "audio": _attached("audio"),
    "chat/export": _asked("chat/export", overwrite=True),
    "patches/export": _asked("patches/export", overwrite=True),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_a_renamed_data_folder_is_still_our_own(sidecar: Sidecar, spawn: Spawner, way: str) -> None:
    """Until the sidecar notices it, twice a second, says so and continues with a copy: then this is tried again."""
    for number in range(20):
        answer = answer_while_renamed(sidecar, spawn, spawn.folder / f"moved {number}", WAYS[way])
        if answer is not None:
            break
    else:
        pytest.fail("the sidecar noticed each of twenty renames before it was asked")
    assert told(Refusal(answer["error"])) == (-32602, "own_file")
    assert locked(spawn)


def answer_while_renamed(
    sidecar: Sidecar, spawn: Spawner, moved: Path, ask: Callable[[Sidecar, str], Json]
) -> Json | None:
    """What the sidecar answers about its database while its folder is `moved`; None when it noticed that before.

    Ends when it has noticed it and made another.
    """
    before = len(sidecar.statuses("storage"))
    spawn.data_dir.rename(moved)
    answer = ask(sidecar, str(moved / "sidecar.db"))
    still_locked = is_locked(moved / "sidecar.db")
    noticed = len(sidecar.statuses("storage")) > before
    sidecar.wait_until(lambda: is_ready(sidecar, before), PATIENCE_S, "another database")
    assert noticed or still_locked
    return None if noticed else answer


def is_ready(sidecar: Sidecar, before: int) -> bool:
    """Whether the sidecar has replaced its files, after so many statuses."""
    told = sidecar.statuses("storage")[before:]
    return bool(told) and told[-1]["data"]["state"] == "ready"
