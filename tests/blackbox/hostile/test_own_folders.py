"""No project, and no further folder of a chat, is or lies in the folders of Sidecar's own data and settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.blackbox.work.workbench import Workbench, call, outputs
from tests.support.sidecar import Refusal, Sidecar


class Own:
    """The own folders of a running sidecar, and spellings of them."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.sidecar: Sidecar = bench.start(["done"])
        self.data = _data_folder(bench)
        self.settings = bench.spawn.folder / "home" / ".config" / "sidecar"
        self.settings.mkdir(parents=True, exist_ok=True)

    def spelled(self, way: str) -> str:
        link = self.bench.spawn.folder / "link"
        if way == "a link to the data":
            link.symlink_to(self.data)
        if way == "a link to above the data":
            link.symlink_to(self.data.parent)
        if way == "a link inside the project":
            link = self.bench.project / "inside"
            link.symlink_to(self.settings)
        return {
            "the data": str(self.data),
            "the data with dots": f"{self.data}/../{self.data.name}/.",
            "a folder in the data that is absent": str(self.data / "x" / "y"),
            "a link to the data": str(link),
            "a link to above the data": str(link / self.data.name),
            "a link inside the project": str(link),
            "the settings": str(self.settings),
            "a folder in the settings": str(self.settings / "rules"),
        }[way]


def _data_folder(bench: Workbench) -> Path:
    (found,) = {path.parent for path in bench.spawn.folder.rglob("sidecar.db")}
    return found


WAYS = [
    "the data",
    "the data with dots",
    "a folder in the data that is absent",
    "a link to the data",
    "a link to above the data",
    "a link inside the project",
    "the settings",
    "a folder in the settings",
]


@pytest.fixture
def own(bench: Workbench) -> Own:
    return Own(bench)


def check(refusal: Refusal, field: str) -> None:
    assert (refusal.code, refusal.detail("field")) == (-32602, field)
    assert "choose another folder" in str(refusal)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_no_chat_is_opened_in_an_own_folder(own: Own, way: str) -> None:
    path = own.spelled(way)
    check(own.sidecar.refused("chat/open", chatId="new", projectPath=path), "projectPath")
    check(own.sidecar.refused("chat/open", projectPath=path), "projectPath")
    check(
        own.sidecar.refused("prompt/send", chatId="new", projectPath=path, promptId="p", text="x"),
        "projectPath",
    )
    assert [chat["chatId"] for chat in own.sidecar.call("chat/list")["items"]] == ["c"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_no_chat_is_configured_to_use_an_own_folder(own: Own, way: str) -> None:
    path = own.spelled(way)
    before = own.sidecar.call("chat/open", chatId="c")["config"]
    for key, value, field in [
        ("projectPath", path, "projectPath"),
        ("extraFolders", ["/srv", path], "extraFolders[1]"),
    ]:
        check(own.sidecar.refused("chat/configure", chatId="c", set={key: value}), f"set.{field}")
        check(own.sidecar.refused("chat/open", chatId="new", config={key: value}), f"config.{field}")
    assert own.sidecar.call("chat/open", chatId="c")["config"] == before


def test_an_own_folder_is_neither_trusted_nor_indexed_nor_the_target_of_a_move(own: Own) -> None:
    path, project = str(own.data), str(own.bench.project)
    check(own.sidecar.refused("project/trust", path=path, trusted=True), "path")
    check(own.sidecar.refused("index/add", projectPath=path, path=path), "projectPath")
    own.sidecar.run("go", chatId="c")
    check(own.sidecar.refused("projects/rebind", **{"from": project, "to": path}), "to")


LATER = [
    call("list_dir", path="."),
    call("read_file", path="installation"),
    call("grep", pattern="a"),
    call("glob", pattern="**"),
    call("git_diff"),
    call("write_file", path="new.txt", content="x"),
    call("run_command", command="touch ran"),
    call("run_code", language="bash", code="touch ran"),
    call("index_path", path="."),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("folder", ["data", "settings"])
def test_a_link_that_replaces_the_project_later_shows_no_own_folder(bench: Workbench, folder: str) -> None:
    sidecar = bench.start([*LATER, "done"])
    own = bench.spawn.folder / "home" / ".config" / "sidecar" if folder == "settings" else _data_folder(bench)
    before = sorted(os.listdir(own))
    bench.project.rename(bench.project.with_name("moved"))
    os.symlink(own, bench.project)
    ended = sidecar.run("go", chatId="c")
    said = outputs(sidecar, ended["sessionId"])
    assert ["Sidecar's own data or settings" in text for text in said] == [True] * len(LATER), said
    assert [name for name in os.listdir(own) if name in ("ran", "new.txt")] == []
    assert set(before) <= set(os.listdir(own))


def test_a_project_that_contains_them_and_one_beside_them_are_accepted(own: Own) -> None:
    beside = own.data.with_name(own.data.name + "-beside")
    beside.mkdir()
    for folder in (own.bench.spawn.folder, beside):
        opened = own.sidecar.call("chat/open", chatId="new", projectPath=str(folder))
        assert opened["config"]["projectPath"] == str(folder.resolve())


def test_a_configured_project_is_stored_by_its_real_path(own: Own) -> None:
    link = own.bench.spawn.folder / "link"
    link.symlink_to(own.bench.project)
    changed = own.sidecar.call("chat/configure", chatId="c", set={"projectPath": str(link)})
    assert changed["config"]["projectPath"] == str(own.bench.project.resolve())
    relative = own.sidecar.refused("chat/configure", chatId="c", set={"projectPath": "link"})
    assert (relative.code, relative.detail("field")) == (-32602, "set.projectPath")
