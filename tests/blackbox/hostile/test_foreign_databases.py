"""A database that another installation wrote brings what was said. Nothing in it runs, allows, or reaches anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.blackbox.hostile.databases import PLANTS, SECRET, WAYS, Scene, change, end, files
from tests.blackbox.mutants.patching import Mutant, environment, source
from tests.blackbox.work.workbench import call
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

pytestmark = pytest.mark.slow

TRIGGERS = {
    "a trigger that trusts": "CREATE TRIGGER t AFTER INSERT ON projects BEGIN UPDATE projects SET trusted = 1; END",
    "a trigger that allows": "CREATE TRIGGER t AFTER DELETE ON permission_rules BEGIN INSERT INTO permission_rules"
    " VALUES ('x', 'user', NULL, NULL, 'allow', 'run', '*', NULL, 'app', 0); END",
    "a view": "CREATE VIEW v AS SELECT * FROM chats",
    "an index over an expression": "CREATE INDEX i ON chats (abs(id))",
    "a table of its own": "CREATE TABLE mine (a DEFAULT (random()))",
    "another trigger of a known name": "DROP TRIGGER chats_made_in_project",
}


def use(sidecar: Sidecar, scene: Scene) -> str:
    """Open the chat, let the model try everything, take back what can be; all that was said."""
    opened = sidecar.call("chat/open", chatId="c", projectPath=str(scene.project))
    fresh = sidecar.call("chat/open", chatId="fresh", projectPath=str(scene.project))["config"]
    assert opened["config"] == fresh
    assert sidecar.call("permissionRules/list", chatId="c", projectPath=str(scene.project))["items"] == []
    assert sidecar.call("tools/list", chatId="c")["servers"] == []
    assert sidecar.call("files/list", chatId="c")["files"] == []
    assert sidecar.call("patches/list", chatId="c")["items"] == []
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny"}
    sidecar.run("what is there?", chatId="c")
    sidecar.answer(sidecar.ask("patches/revert", chatId="c", path=str(scene.project / "new.sh")))
    return json.dumps([sidecar.call("chat/history", chatId="c"), sidecar.frames])


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_it_runs_allows_or_reaches_anything(spawn: Spawner, way: str, name: str) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS[name])
    before = files(scene.project)
    said = use(scene.bring(way), scene)
    assert (scene.canary.exists(), SECRET in said) == (False, False)
    assert files(scene.project) == before


@pytest.mark.parametrize("name", ["auto", "trust", "a rule of the user"])
def test_a_twin_that_takes_a_database_as_it_is_is_caught(spawn: Spawner, tmp_path: Path, name: str) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS[name])
    twin = Mutant("", "sidecar/store/origin.py", "    if found == installation:\n", "    if True:\n", "")
    sidecar = scene.bring("a data folder", env=environment(source(tmp_path / "twin", twin, whole=False)))
    sidecar.call("chat/open", chatId="c", projectPath=str(scene.project))
    sidecar.answering["permission/request"] = lambda params: {"decision": "deny"}
    sidecar.run("what is there?", chatId="c")
    assert scene.canary.exists() or (scene.project / "RAN").exists()


@pytest.mark.parametrize("way", WAYS)
def test_what_was_said_is_there_and_the_database_is_kept_as_it_was(spawn: Spawner, way: str) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS["a change to take back"])
    sidecar = scene.bring(way)
    turns = sidecar.call("chat/history", chatId="c")["turns"]
    assert "write it" in json.dumps(turns)
    folder = scene.foreign if way == "a data folder" else spawn.data_dir
    copies = list(folder.glob("sidecar.db.elsewhere-*"))
    assert len(copies) == (0 if way == "restore" else 1)
    end(sidecar)
    again = scene.user(scene.foreign if way == "a data folder" else None)
    again.call("chat/open", chatId="c", config={"mode": "auto"})
    end(again)
    third = scene.user(scene.foreign if way == "a data folder" else None)
    assert third.call("chat/open", chatId="c")["config"]["mode"] == "auto"


FOLDERS = ["outside", "home/.aws", "home", "", "home/.ssh/keys", "project"]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("way", WAYS)
def test_no_folder_of_it_is_read_until_an_app_names_it(spawn: Spawner, way: str, folder: str) -> None:
    scene = Scene(spawn)
    place = spawn.folder / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "kept.txt").write_text(SECRET)
    scene.replies = [[call("read_file", path="kept.txt")], "done"]

    def plant(sidecar: Sidecar, scene: Scene) -> None:
        sidecar.call("chat/open", chatId="d", projectPath=str(place), config={"mode": "auto"})
        sidecar.run("hi", chatId="d")

    scene.make(plant)
    sidecar = scene.bring(way)
    listed = sidecar.call("chat/list", projectPath=str(place))["items"]
    (chat,) = [chat for chat in listed if chat["chatId"] == "d"]
    assert chat["projectPath"] == str(place.resolve())
    session = chat["sessionId"]
    assert sidecar.call("chat/open", sessionId=session)["config"].get("projectPath") is None
    sidecar.call("chat/configure", sessionId=session, set={"mode": "auto"})
    sidecar.run("look", sessionId=session)
    sidecar.call("chat/fork", sessionId=session, newChatId="e")
    sidecar.run("look", chatId="e")
    assert SECRET not in json.dumps(sidecar.frames)
    end(sidecar)
    again = scene.user(scene.foreign if way == "a data folder" else None)
    assert again.call("chat/open", sessionId=session)["config"].get("projectPath") is None
    again.call("chat/open", chatId="d", projectPath=str(place))
    again.answering["permission/request"] = lambda params: {"decision": "allow_once"}
    again.run("look", chatId="d")
    assert SECRET in json.dumps(again.frames)


def test_restore_says_what_it_did_not_take(spawn: Spawner) -> None:
    scene = Scene(spawn)

    def plant(sidecar: Sidecar, scene: Scene) -> None:
        for name in ("auto", "a rule of the user", "trust", "more folders"):
            PLANTS[name](sidecar, scene)

    scene.make(plant)
    told = scene.restore().stderr
    for words in ("3 permission rules", "trust in 1 project", "extraFolders, mode", "--trust"):
        assert words in told


STRIPPED: dict[str, dict[str, object]] = {
    "a server": {"chats": 1, "keys": ["mcpServers"]},
    "auto": {"chats": 1, "keys": ["mode"]},
    "a rule of the user": {"rules": 3},
    "a rule of the chat": {"rules": 3},
    "trust": {"projects": 1},
    "an open file": {},
    "a change to take back": {"chats": 1, "keys": ["mode"], "patches": 1},
}


def reports(sidecar: Sidecar) -> list[object]:
    """What the app was told of databases of other installations, once the database is open."""
    sidecar.call("chat/list")
    told = [status["data"] for status in sidecar.statuses("storage")]
    return [(data["state"], data["stripped"]) for data in told if "stripped" in data]


@pytest.mark.parametrize("name", STRIPPED)
@pytest.mark.parametrize("way", ["a data folder", "put in place by hand"])
def test_the_app_is_told_once_what_was_removed(spawn: Spawner, way: str, name: str) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS[name])
    sidecar = scene.bring(way)
    told = reports(sidecar)
    folder = scene.foreign if way == "a data folder" else spawn.data_dir
    (copy,) = folder.glob("sidecar.db.elsewhere-*")
    assert told == [("ready", {**STRIPPED[name], "folders": 1, "copy": str(copy)})]
    end(sidecar)
    assert reports(scene.user(scene.foreign if way == "a data folder" else None)) == []


def test_a_backup_of_ones_own_keeps_everything(spawn: Spawner) -> None:
    scene = Scene(spawn)
    sidecar = scene.user()
    sidecar.call("chat/open", chatId="c", projectPath=str(scene.project), config={"mode": "auto"})
    PLANTS["a rule of the user"](sidecar, scene)
    sidecar.call("project/trust", path=str(scene.project), trusted=True)
    end(sidecar)
    backup = scene.spawn.folder / "mine.db"
    backup.write_bytes((spawn.data_dir / "sidecar.db").read_bytes())
    told = scene.restore(file=backup)
    assert (told.returncode, "not taken" in told.stderr) == (0, False)
    again = scene.user()
    assert again.call("chat/open", chatId="c")["config"]["mode"] == "auto"
    assert len(again.call("permissionRules/list")["items"]) == 3
    assert again.call("project/trust", path=str(scene.project))["trusted"] is True


def test_a_backup_of_another_that_is_trusted_keeps_everything(spawn: Spawner) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS["auto"])
    assert scene.restore("--trust").returncode == 0
    assert scene.user().call("chat/open", chatId="c")["config"]["mode"] == "auto"


@pytest.mark.parametrize("name", TRIGGERS)
@pytest.mark.parametrize("way", ["restore", "a data folder"])
def test_a_schema_that_no_sidecar_makes_is_refused(spawn: Spawner, way: str, name: str) -> None:
    scene = Scene(spawn)
    scene.make(PLANTS["trust"])
    more = [TRIGGERS[name]]
    if name.startswith("another"):
        more.append(
            "CREATE TRIGGER chats_made_in_project AFTER UPDATE ON projects BEGIN UPDATE projects SET trusted = 1; END"
        )
    change(scene.foreign / "sidecar.db", *more)
    if way == "restore":
        refused = scene.restore()
        assert (refused.returncode, "was not created by a sidecar" in refused.stderr) == (1, True)
        assert scene.user().call("chat/list")["items"] == []
    else:
        sidecar = scene.user(scene.foreign)
        refusal = sidecar.refused("chat/open", chatId="c", projectPath=str(scene.project))
        assert (refusal.code, "was not created by a sidecar" in str(refusal)) == (-32015, True)
    assert not scene.canary.exists()


@pytest.mark.parametrize("known", [False, True])
def test_an_unmarked_database_is_adopted_by_a_new_installation_only(spawn: Spawner, known: bool) -> None:
    """One from before installations had names: the user's own after an update, anybody's later."""
    scene = Scene(spawn)
    sidecar = scene.user()
    sidecar.call("chat/open", chatId="c", config={"mode": "auto"})
    end(sidecar)
    change(spawn.data_dir / "sidecar.db", "DELETE FROM origin")
    if not known:
        (spawn.folder / "home/.config/sidecar/installation").unlink()
    assert scene.user().call("chat/open", chatId="c")["config"]["mode"] == ("ask" if known else "auto")


def test_waiting_prompts_of_another_do_not_run(spawn: Spawner) -> None:
    scene = Scene(spawn)

    def plant(sidecar: Sidecar, scene: Scene) -> None:
        sidecar.call("chat/configure", chatId="c", set={"mode": "auto"})

    scene.make(plant)
    change(
        scene.foreign / "sidecar.db",
        "INSERT INTO prompts (chat, id, turn, status, position, delivery, content, overrides, seq) VALUES"
        """ (1, 'p', 't', 'queued', 1, 'queue', '[{"type":"text","text":"go"}]', '{}', 1)""",
    )
    sidecar = scene.bring("a data folder")
    opened = sidecar.call("chat/open", chatId="c", projectPath=str(scene.project))
    assert opened["queue"]["items"] == []
    assert sidecar.call("prompt/list", chatId="c")["queue"]["items"] == []


def test_the_identity_is_for_its_owner_and_in_no_report(spawn: Spawner) -> None:
    scene = Scene(spawn)
    sidecar = scene.user()
    sidecar.call("chat/open", chatId="c")
    path = spawn.folder / "home/.config/sidecar/installation"
    identity = path.read_text().strip()
    assert (len(identity), path.stat().st_mode & 0o777) == (32, 0o600)
    report = spawn.folder / "report.zip"
    sidecar.call("doctor/report", path=str(report), redact=False)
    assert identity not in json.dumps([sidecar.call("chat/export", chatId="c"), sidecar.frames])
    import zipfile

    with zipfile.ZipFile(report) as file:
        assert all(identity.encode() not in file.read(name) for name in file.namelist())
