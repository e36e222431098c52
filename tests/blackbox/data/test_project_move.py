"""`projects/rebind`: a moved project keeps its chats and what belongs to them, but no trust comes along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .database_files import ended, folder


def rebind(sidecar: Sidecar, old: Path, new: Path) -> dict[str, Any]:
    return sidecar.call("projects/rebind", **{"from": str(old), "to": str(new)})


def furnish(sidecar: Sidecar, project: Path) -> None:
    """A project with two chats, an open file, rules that allow and deny, and trust."""
    (project / "notes.txt").write_text("looms\n")
    for name in ("a", "b"):
        sidecar.run("hello", chatId=name, projectPath=str(project))
    sidecar.call("files/open", chatId="a", path="notes.txt", pinned=True)
    for effect, rule in (("allow", "run(make *)"), ("deny", "run(rm *)")):
        sidecar.call(
            "permissionRules/set", projectPath=str(project), scope="project", effect=effect, rule=rule
        )
    sidecar.call("project/trust", path=str(project), trusted=True)


def rules(sidecar: Sidecar, project: Path) -> list[str]:
    items = sidecar.call("permissionRules/list", projectPath=str(project))["items"]
    return sorted(f"{item['effect']} {item['pattern']}" for item in items)


def test_what_belongs_to_a_moved_project_goes_along_and_trust_stays_behind(spawn: Spawner) -> None:
    sidecar, old = spawn(), folder(spawn, "old")
    furnish(sidecar, old)
    new = old.rename(spawn.folder / "new")
    result = rebind(sidecar, old, new)
    assert {name: result[name] for name in ("path", "chats", "openFiles", "rules", "rulesLeft")} == {
        "path": str(new.resolve()),
        "chats": 2,
        "openFiles": 1,
        "rules": 2,
        "rulesLeft": 0,
    }
    assert (result["wasTrusted"], result["trusted"]) == (True, False)
    assert rules(sidecar, new) == ["allow make *", "deny rm *"]
    (file,) = sidecar.call("files/list", chatId="a")["files"]
    assert (file["path"], file["pinned"], file["state"]) == (str((new / "notes.txt").resolve()), True, "ok")
    assert {item["projectPath"] for item in sidecar.call("chat/list")["items"]} == {str(new.resolve())}
    assert sidecar.call("stats/read", scope="project", projectPath=str(new))["turns"] == 2


def test_followers_are_told_and_the_move_survives_a_restart(spawn: Spawner) -> None:
    sidecar, old = spawn(), folder(spawn, "old")
    furnish(sidecar, old)
    session = sidecar.call("chat/open", chatId="a")["sessionId"]
    new = old.rename(spawn.folder / "new")
    rebind(sidecar, old, new)
    told = sidecar.wait_event(
        session,
        lambda e: e["type"] == "config.updated" and e["data"]["config"]["projectPath"] == str(new.resolve()),
    )
    assert told["seq"]
    sidecar.run("and now?", chatId="a")
    ended(sidecar)
    again = spawn().call("chat/open", chatId="a")
    assert (again["config"]["projectPath"], len(again["turns"])) == (str(new.resolve()), 2)


def test_asking_again_moves_nothing_more(spawn: Spawner) -> None:
    sidecar, old = spawn(), folder(spawn, "old")
    furnish(sidecar, old)
    new = old.rename(spawn.folder / "new")
    rebind(sidecar, old, new)
    again = rebind(sidecar, old, new)
    assert [again[name] for name in ("chats", "openFiles", "rules", "figures", "sources")] == [0] * 5
    assert rules(sidecar, new) == ["allow make *", "deny rm *"]


def test_what_allows_something_stays_with_a_folder_that_is_still_there(spawn: Spawner) -> None:
    sidecar, old, new = spawn(), folder(spawn, "old"), folder(spawn, "new")
    furnish(sidecar, old)
    result = rebind(sidecar, old, new)
    assert (result["chats"], result["rules"], result["rulesLeft"], result["trusted"]) == (2, 1, 1, False)
    assert (rules(sidecar, old), rules(sidecar, new)) == (["allow make *"], ["deny rm *"])


def test_nobody_finds_trust_at_the_place_that_a_project_left(spawn: Spawner) -> None:
    sidecar, old = spawn(), folder(spawn, "old")
    furnish(sidecar, old)
    (old / ".sidecar").mkdir()
    config = 'mode = "auto"\n'
    (old / ".sidecar/config.toml").write_text(config)
    assert _mode(sidecar, old) == "ask"  # the trust was given before there was this file
    sidecar.call("project/trust", path=str(old), trusted=True)
    assert _mode(sidecar, old) == "auto"
    new = old.rename(spawn.folder / "new")
    rebind(sidecar, old, new)
    (folder(spawn, "old") / ".sidecar").mkdir()
    (old / ".sidecar/config.toml").write_text(config)
    assert (_mode(sidecar, old), _mode(sidecar, new)) == ("ask", "ask")
    ended(sidecar)
    again = spawn()
    assert (_mode(again, old), _mode(again, new)) == ("ask", "ask")
    again.call("project/trust", path=str(new), trusted=True)
    assert _mode(again, new) == "auto"


def _mode(sidecar: Sidecar, project: Path) -> Any:
    return sidecar.call("settings/read", projectPath=str(project))["values"]["mode"]["value"]


def test_the_chat_that_is_keyed_by_the_folder_gets_the_new_folders_key(spawn: Spawner) -> None:
    sidecar, old = spawn(), folder(spawn, "old")
    before = sidecar.run("hello", projectPath=str(old))["sessionId"]
    new = old.rename(spawn.folder / "new")
    assert rebind(sidecar, old, new)["renamed"] == 1
    opened = sidecar.call("chat/open", projectPath=str(new), ifMissing="fail")
    assert (opened["status"], len(opened["turns"]), opened["sessionId"] == before) == ("resumed", 1, False)
    assert sidecar.refused("chat/history", sessionId=before).code == -32002


def test_a_folder_that_has_a_chat_of_its_own_keeps_it(spawn: Spawner) -> None:
    sidecar, old, new = spawn(), folder(spawn, "old"), folder(spawn, "new")
    before = sidecar.run("from the old", projectPath=str(old))["sessionId"]
    own = sidecar.run("from the new", projectPath=str(new))["sessionId"]
    result = rebind(sidecar, old, new)
    assert (result["chats"], result["renamed"]) == (1, 0)
    texts = [
        sidecar.call("chat/history", sessionId=session)["turns"][0]["items"][0]["text"]
        for session in (before, own)
    ]
    assert texts == ["from the old", "from the new"]


def test_it_is_refused_while_a_turn_runs_there(spawn: Spawner) -> None:
    sidecar, other = spawn(model=write_script(spawn.folder)), spawn()
    old, new = folder(spawn, "old"), folder(spawn, "new")
    other.run("hello", chatId="idle", projectPath=str(old))
    sent = sidecar.say("hang", chatId="busy", projectPath=str(old))
    sidecar.wait_event(sent["sessionId"], "message.delta")
    move = {"from": str(old), "to": str(new)}
    assert sidecar.refused("projects/rebind", **move).code == -32004
    refusal = other.refused("projects/rebind", **move)
    assert (refusal.code, refusal.detail("owner")["pid"]) == (-32011, sidecar.pid)
    assert {i["projectPath"] for i in other.call("chat/list")["items"]} == {str(old.resolve())}
    sidecar.call("turn/cancel", chatId="busy")
    assert other.call("projects/rebind", **move)["chats"] == 2


def test_a_turn_that_a_dead_process_left_is_closed_first(spawn: Spawner) -> None:
    first, old, new = spawn(model=write_script(spawn.folder)), folder(spawn, "old"), folder(spawn, "new")
    sent = first.say("hang", chatId="c", projectPath=str(old))
    first.wait_event(sent["sessionId"], "message.delta")
    first.kill()
    second = spawn()
    assert rebind(second, old, new)["chats"] == 1
    (turn,) = second.call("chat/history", chatId="c")["turns"]
    assert turn["status"] == "interrupted"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("from_", "to", "code", "field"),
    [
        ("relative", "{new}", -32602, "from"),
        ("{old}", "relative", -32602, "to"),
        ("{old}", "{new}/nowhere", -32602, "to"),
        ("{old}", "{old}/../old", -32602, "to"),
        ("{new}", "{old}", -32002, "from"),
    ],
)
def test_a_wrong_move_is_refused_by_name(spawn: Spawner, from_: str, to: str, code: int, field: str) -> None:
    sidecar, old, new = spawn(), folder(spawn, "old"), folder(spawn, "new")
    sidecar.run("hello", chatId="c", projectPath=str(old))
    spelled = {name: text.format(old=old, new=new) for name, text in (("from", from_), ("to", to))}
    refusal = sidecar.refused("projects/rebind", **spelled)
    assert (refusal.code, refusal.detail("field")) == (code, field)


def test_texts_of_the_index_go_along_also_into_a_folder_that_has_some(spawn: Spawner) -> None:
    sidecar, old, new = spawn(), folder(spawn, "old"), folder(spawn, "new")
    for project, words in ((old, "warp and weft"), (new, "mill and grain")):
        sidecar.run("hello", chatId=project.name, projectPath=str(project))
        sidecar.call("index/add", content=words, source=f"notes of {project.name}", projectPath=str(project))
    sidecar.call("index/add", content="shuttle", source="the chat's", chatId="old")
    assert rebind(sidecar, old, new)["sources"] == 2
    for words, source in (("weft", "notes of old"), ("grain", "notes of new"), ("shuttle", "the chat's")):
        asked = {"queries": [words], "scope": "project", "projectPath": str(new)}
        (result,) = sidecar.call("index/search", **asked)["results"]
        assert [hit["source"] for hit in result["hits"]] == [source]
