"""Blobs, models, settings, trust, figures, the doctor: what belongs to no single chat."""

from __future__ import annotations

import base64
import stat
import zipfile
from pathlib import Path

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

DATA = bytes(range(256)) * 40


def put(sidecar: Sidecar, data: bytes = DATA) -> Json:
    return sidecar.call("blob/put", data=base64.b64encode(data).decode(), mimeType="image/png", name="a.png")


def test_a_blob_comes_back_whole_and_in_ranges(sidecar: Sidecar) -> None:
    blob = put(sidecar)
    assert blob["size"] == len(DATA)
    for offset, length in ((0, None), (0, 1), (100, 50), (len(DATA) - 3, 100), (len(DATA), 5), (7, None)):
        span = {"length": length} if length is not None else {}
        part = sidecar.call("blob/read", blobId=blob["blobId"], offset=offset, **span)
        assert base64.b64decode(part["data"]) == DATA[offset : None if length is None else offset + length]
        assert (part["total"], part["mimeType"], part["name"]) == (len(DATA), "image/png", "a.png")


def test_an_empty_blob_is_one(sidecar: Sidecar) -> None:
    blob = put(sidecar, b"")
    assert sidecar.call("blob/read", blobId=blob["blobId"])["data"] == ""


def test_a_blob_survives_a_kill(spawn: Spawner) -> None:
    first = spawn()
    blob = put(first)
    first.kill()
    assert spawn().call("blob/read", blobId=blob["blobId"])["total"] == len(DATA)


def test_what_is_no_base64_or_no_blob_is_refused(sidecar: Sidecar) -> None:
    assert sidecar.refused("blob/put", data="no base64!", mimeType="x/y").code == -32602
    assert sidecar.refused("blob/read", blobId="0" * 64).code == -32002
    assert sidecar.refused("blob/read").code == -32602
    for wrong in ({"offset": -1}, {"length": -1}):
        assert sidecar.refused("blob/read", blobId=put(sidecar)["blobId"], **wrong).code == -32602


def test_the_models_name_echo_as_the_default_here(sidecar: Sidecar) -> None:
    items = sidecar.call("models/list")["items"]
    assert [item["id"] for item in items if item["default"]] == ["echo:"]
    assert [i["id"] for i in sidecar.call("models/list", provider="echo")["items"]] == ["echo:"]


def test_settings_tell_the_layer_of_each_value(sidecar: Sidecar) -> None:
    values = sidecar.call("settings/read")["values"]
    assert values["model"] == {"value": "echo:", "layer": "environment"}
    assert values["mode"] == {"value": "ask", "layer": "default"}


def test_a_written_setting_takes_effect_and_keeps_comments(spawn: Spawner) -> None:
    first = spawn()
    path = first.call("settings/write", scope="user", set={"mode": "read-only"})["path"]
    with Path(path).open("a") as file:
        file.write("# mine\n[session]\nmax_steps = 7 # few\n")
    first.call("settings/write", scope="user", set={"session.max_steps": 8, "mode": None})
    text = Path(path).read_text()
    assert "# mine" in text
    assert "max_steps = 8 # few" in text
    assert "mode" not in text
    assert spawn().call("settings/read")["values"]["session.max_steps"] == {"value": 8, "layer": "user"}


def test_a_write_upon_another_version_is_refused(sidecar: Sidecar) -> None:
    version = sidecar.call("settings/read", scope="user")["version"]
    sidecar.call("settings/write", scope="user", set={"mode": "auto"}, expectedVersion=version)
    refusal = sidecar.refused("settings/write", scope="user", set={"mode": "ask"}, expectedVersion=version)
    assert refusal.code == -32010
    assert sidecar.call("settings/read", scope="user")["values"]["mode"]["value"] == "auto"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wrong", [{"modle": "echo:"}, {"mode": "wild"}, {"session.max_steps": "x"}], ids=str)
def test_a_wrong_setting_is_refused_by_name(sidecar: Sidecar, wrong: Json) -> None:
    refusal = sidecar.refused("settings/write", scope="user", set=wrong)
    assert refusal.code == -32602
    assert next(iter(wrong)).split(".")[-1] in str(refusal)


def test_a_projects_settings_stand_in_its_own_file(spawn: Spawner) -> None:
    sidecar, project = spawn(), spawn.folder / "project"
    project.mkdir()
    sidecar.call("project/trust", path=str(project), trusted=True)
    sidecar.call("settings/write", scope="project", projectPath=str(project), set={"mode": "read-only"})
    assert "read-only" in (project / ".sidecar/config.toml").read_text()
    sidecar.call("project/trust", path=str(project), trusted=True)
    values = sidecar.call("settings/read", projectPath=str(project))["values"]
    assert values["mode"] == {"value": "read-only", "layer": "project"}
    assert sidecar.call("settings/read")["values"]["mode"]["value"] == "ask"


def test_project_settings_need_a_project(sidecar: Sidecar) -> None:
    assert sidecar.refused("settings/write", scope="project", set={"mode": "ask"}).code == -32602


def test_trust_is_given_and_taken(spawn: Spawner) -> None:
    sidecar, project = spawn(), spawn.folder / "project"
    project.mkdir()
    for trusted in (True, True, False):
        result = sidecar.call("project/trust", path=str(project), trusted=trusted)
        assert result == {"path": str(project.resolve()), "trusted": trusted}


def test_the_figures_count_what_happened(sidecar: Sidecar, spawn: Spawner) -> None:
    sidecar.run("one two", chatId="a", projectPath=str(spawn.folder))
    sidecar.run("three", chatId="b")
    put(sidecar)
    whole = sidecar.call("stats/read")
    assert (whole["chats"], whole["turns"], whole["blobs"], whole["blobBytes"]) == (2, 2, 1, len(DATA))
    one = sidecar.call("stats/read", scope="chat", chatId="a")
    assert (one["chats"], one["turns"]) == (1, 1)
    project = sidecar.call("stats/read", scope="project", projectPath=str(spawn.folder))
    assert (project["chats"], project["turns"]) == (1, 1)
    assert whole["databaseBytes"] > 0


def test_the_figures_of_an_unknown_chat_are_not_found(sidecar: Sidecar) -> None:
    assert sidecar.refused("stats/read", scope="chat", chatId="ghost").code == -32002


def test_the_doctor_finds_nothing_to_fail(sidecar: Sidecar) -> None:
    result = sidecar.call("doctor/run")
    assert result["status"] in ("ok", "warn")
    assert result["checks"]
    assert all(check["action"] for check in result["checks"] if check["status"] != "ok")


def test_the_report_is_a_private_zip_without_what_was_said(sidecar: Sidecar, spawn: Spawner) -> None:
    sidecar.run("xyzzycanary", chatId="xyzzychat")
    sidecar.call("chat/rename", chatId="xyzzychat", title="xyzzytitle")
    path = spawn.folder / "report.zip"
    result = sidecar.call("doctor/report", path=str(path))
    assert result["bytes"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(result["files"])
        assert not [name for name in archive.namelist() if b"xyzzy" in archive.read(name)]
