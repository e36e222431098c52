"""`data/purge`: what is purged is gone from the disk, is counted, and what could mean two things is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blackbox.work.workbench import Workbench, call
from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .database_files import CANARY, ended, file_size, fill, folder, holding, sql


def purge(sidecar: Sidecar, **params: Any) -> dict[str, Any]:
    return sidecar.call("data/purge", confirm=True, **params)


def test_a_purged_chat_is_counted_and_its_neighbour_is_untouched(spawn: Spawner) -> None:
    sidecar = spawn()
    gone = fill(sidecar, "c", CANARY, 3)
    kept = fill(sidecar, "other", "quiet", 2)
    before = sidecar.journal(kept)
    result = purge(sidecar, chatId="c")
    removed = result["removed"]
    assert (result["scope"], result["left"]) == ("chat", [])
    assert (removed["chats"], removed["turns"], removed["messages"], removed["prompts"]) == (1, 3, 6, 3)
    assert removed["events"] > 3
    assert sidecar.refused("chat/history", sessionId=gone).code == -32009
    assert sidecar.journal(kept) == before
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["other"]


def test_no_byte_of_a_purged_chat_stays_while_the_sidecar_runs_and_after(bench: Workbench) -> None:
    path = bench.project / f"{CANARY}.txt"
    path.write_text(f"{CANARY}\n" * 2000)
    look = [call("read_file", path=path.name), call("run_command", command=f"cat {path.name}")]
    write = call("write_file", path="new.txt", content=CANARY * 50)
    sidecar = bench.start([look, [write], f"I saw {CANARY}"])
    spawn, project = bench.spawn, str(bench.project)
    sidecar.run(f"look at {CANARY}", chatId="c")
    sidecar.call("files/open", chatId="c", path=path.name)
    sidecar.call("permissionRules/set", chatId="c", scope="chat", effect="allow", rule=f"run({CANARY} *)")
    sidecar.call(
        "permissionRules/set", projectPath=project, scope="project", effect="deny", rule=f"edit({CANARY})"
    )
    sidecar.run("quiet", chatId="other", projectPath=project)
    assert holding(spawn)
    assert purge(sidecar, chatId="c")["removed"]["patches"] == 1
    assert purge(sidecar, scope="project", projectPath=project)["removed"]["rules"] == 1
    assert holding(spawn) == []
    ended(sidecar)
    assert holding(spawn) == []


def test_the_files_really_become_smaller(spawn: Spawner) -> None:
    sidecar = spawn()
    fill(sidecar, "keep", "quiet", 1)
    empty = file_size(spawn)
    fill(sidecar, "c", "many words", 40)
    full = file_size(spawn)
    assert full > empty + 500_000
    result = purge(sidecar, chatId="c")
    now = file_size(spawn)
    assert now < empty + 200_000
    assert result["databaseBytes"] == now
    # Before the purge, what ends the last turn may add some pages to the log; nothing makes it smaller.
    assert full - now <= result["bytesFreed"] <= full - now + 100_000


def test_a_file_of_an_older_program_becomes_smaller_too(spawn: Spawner) -> None:
    first = spawn()
    first.call("chat/open", chatId="c")
    ended(first)
    sql(spawn, "PRAGMA auto_vacuum = NONE", "VACUUM")
    assert sql(spawn, "PRAGMA auto_vacuum") == [(0,)]
    sidecar = spawn()
    fill(sidecar, "c", "many words", 40)
    full = file_size(spawn)
    assert purge(sidecar, chatId="c")["bytesFreed"] > full / 2
    assert file_size(spawn) < full / 2


def test_a_project_is_purged_with_its_rules_trust_and_totals(spawn: Spawner) -> None:
    sidecar, mine, other = spawn(), folder(spawn, "mine"), folder(spawn, "other")
    for name, project in (("a", mine), ("b", mine), ("z", other)):
        sidecar.run("hello", chatId=name, projectPath=str(project))
    sidecar.call("project/trust", path=str(mine), trusted=True)
    sidecar.call("permissionRules/set", projectPath=str(mine), scope="project", effect="deny", rule="run(*)")
    removed = purge(sidecar, scope="project", projectPath=str(mine))["removed"]
    assert (removed["chats"], removed["rules"], removed["projects"]) == (2, 1, 1)
    assert removed["totals"] > 0
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["z"]
    figures = sidecar.call("stats/read", scope="project", projectPath=str(mine))
    assert (figures["chats"], figures["purgedChats"]) == (0, 0)
    assert sidecar.call("permissionRules/list", projectPath=str(mine))["items"] == []


def test_all_leaves_tombstones_only(spawn: Spawner) -> None:
    sidecar = spawn()
    session = sidecar.run(f"say {CANARY}", chatId="a", projectPath=str(folder(spawn, CANARY)))["sessionId"]
    sidecar.run(f"say {CANARY}", chatId="b")
    sidecar.call("blob/put", data="eHl6enljYW5hcnk=", mimeType="text/plain", name=CANARY)
    sidecar.call("permissionRules/set", scope="user", effect="deny", rule=f"run({CANARY} *)")
    result = purge(sidecar, scope="all")
    assert (result["removed"]["chats"], result["removed"]["blobs"], result["removed"]["rules"]) == (2, 1, 1)
    assert holding(spawn) == []
    assert sidecar.refused("prompt/send", sessionId=session, promptId="p", text="hello").code == -32009
    assert sidecar.call("stats/read")["purgedChats"] == 0
    assert purge(sidecar, scope="all")["removed"]["chats"] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"chatId": "c"}, "confirm"),
        ({"chatId": "c", "confirm": False}, "confirm"),
        ({"confirm": True}, "scope"),
        ({"confirm": True, "projectPath": "/tmp"}, "scope"),
        ({"confirm": True, "namespace": "n"}, "scope"),
        ({"confirm": True, "scope": "chat"}, "chatId"),
        ({"confirm": True, "scope": "project"}, "projectPath"),
        ({"confirm": True, "scope": "project", "projectPath": "relative"}, "projectPath"),
        ({"confirm": True, "scope": "project", "projectPath": "/tmp", "chatId": "c"}, "chatId"),
        ({"confirm": True, "scope": "project", "projectPath": "/tmp", "namespace": "n"}, "namespace"),
        ({"confirm": True, "scope": "all", "chatId": "c"}, "chatId"),
        ({"confirm": True, "scope": "all", "projectPath": "/tmp"}, "projectPath"),
        ({"confirm": True, "chatId": "c", "projectPath": "/tmp"}, "projectPath"),
    ],
    ids=str,
)
def test_what_could_mean_two_things_is_refused_by_name(
    sidecar: Sidecar, params: dict[str, Any], field: str
) -> None:
    sidecar.run("hello", chatId="c")
    refusal = sidecar.refused("data/purge", **params)
    assert (refusal.code, refusal.detail("field")) == (-32602, field)
    assert sidecar.call("chat/history", chatId="c")["turns"]


def test_a_chat_and_the_project_that_it_works_in_fit(spawn: Spawner) -> None:
    sidecar, project = spawn(), folder(spawn, "project")
    link = spawn.folder / "link"
    link.symlink_to(project)
    sidecar.run("hello", chatId="c", projectPath=str(project))
    assert purge(sidecar, chatId="c", projectPath=str(link))["removed"]["chats"] == 1


def test_a_dry_run_tells_the_same_counts_and_removes_nothing(spawn: Spawner) -> None:
    sidecar, project = spawn(), folder(spawn, "project")
    fill(sidecar, "c", "words", 2, projectPath=str(project))
    wanted = {"scope": "project", "projectPath": str(project)}
    planned = sidecar.call("data/purge", dryRun=True, **wanted)
    assert planned["dryRun"] is True
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 2
    done = purge(sidecar, **wanted)["removed"]
    assert {**done, "totals": 0} == {**planned["removed"], "totals": 0}


def test_an_unknown_chat_is_not_found_and_a_purged_one_has_nothing_left(sidecar: Sidecar) -> None:
    assert sidecar.refused("data/purge", chatId="ghost", confirm=True).code == -32002
    sidecar.run("hello", chatId="c")
    purge(sidecar, chatId="c")
    assert set(purge(sidecar, chatId="c")["removed"].values()) == {0}


def test_a_running_turn_here_is_ended_first(spawn: Spawner) -> None:
    sidecar = spawn(model=write_script(spawn.folder))
    sent = sidecar.say("hang", chatId="c")
    sidecar.wait_event(sent["sessionId"], "message.delta")
    assert purge(sidecar, chatId="c")["removed"]["turns"] == 1
    sidecar.wait_turn(sent["sessionId"], sent["turnId"])
    sidecar.wait_event(sent["sessionId"], "chat.deleted")


def test_a_chat_that_another_process_writes_is_named_and_left(spawn: Spawner) -> None:
    owner, other = spawn(model=write_script(spawn.folder)), spawn()
    project = str(folder(spawn, "project"))
    sent = owner.say("hang", chatId="busy", projectPath=project)
    owner.wait_event(sent["sessionId"], "message.delta")
    other.run("hello", chatId="free", projectPath=project)
    refusal = other.refused("data/purge", chatId="busy", confirm=True)
    assert (refusal.code, refusal.detail("owner")["pid"]) == (-32011, owner.pid)
    for wanted in ({"scope": "project", "projectPath": project}, {"scope": "all"}):
        result = purge(other, **wanted)
        (left,) = result["left"]
        assert (left["chatId"], left["reason"], left["owner"]["pid"]) == ("busy", "locked", owner.pid)
    assert other.refused("chat/history", chatId="free").code == -32009
    assert other.call("chat/history", chatId="busy")["turns"][0]["items"][-1]["text"]
    owner.call("turn/cancel", chatId="busy")
    assert owner.say("hello", chatId="busy")["disposition"] == "started"


def test_a_project_is_found_and_purged_under_an_id_of_an_older_version(spawn: Spawner) -> None:
    first, project = spawn(), folder(spawn, "project")
    first.run("hello", chatId="c", projectPath=str(project))
    ended(first)
    real = str(project.resolve())
    sql(spawn, "UPDATE projects SET hash = 'v0:' || path")
    assert sql(spawn, "SELECT hash FROM projects") == [(f"v0:{real}",)]
    sidecar = spawn()
    assert len(sidecar.call("chat/list", projectPath=str(project))["items"]) == 1
    assert purge(sidecar, scope="project", projectPath=str(project))["removed"]["chats"] == 1


def test_copies_of_the_database_go_with_what_they_hold(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run(f"say {CANARY}", chatId="c")
    sidecar.run("quiet", chatId="other")
    aside, old = (
        spawn.data_dir / "sidecar.db.damaged-20261118T000000Z",
        spawn.data_dir / "sidecar.db.schema-6",
    )
    elsewhere = spawn.folder / "elsewhere"
    for path in (aside, old, elsewhere):
        path.write_text(CANARY)
    (spawn.data_dir / "sidecar.db.schema-5").symlink_to(elsewhere)
    assert purge(sidecar, chatId="c")["removed"]["copies"] == 1
    assert holding(spawn) == [aside.name, "sidecar.db.schema-5"]
    assert purge(sidecar, scope="all")["removed"]["copies"] == 1
    assert (elsewhere.read_text(), aside.exists()) == (CANARY, False)


def test_no_word_of_an_indexed_text_stays(spawn: Spawner) -> None:
    word = "zyxwvqk"  # has no ending that a stem would lose
    sidecar, project = spawn(), folder(spawn, "project")
    (project / "notes.md").write_text(f"# {word}\n\n" + f"The {word} weaves. Nobody knows why.\n" * 200)
    for chat in ("c", "other"):
        sidecar.run("hello", chatId=chat, projectPath=str(project))
    sidecar.call("index/add", path="notes.md", projectPath=str(project))
    sidecar.call("index/add", content=f"{word} and looms. " * 500, source="a log", chatId="c")
    sidecar.call("index/add", content="quiet words of another chat. " * 500, source="quiet", chatId="other")
    removed = purge(sidecar, chatId="c")["removed"]
    assert (removed["sources"], removed["chunks"] > 0) == (1, True)
    assert holding(spawn, word) == ["sidecar.db"]
    (result,) = sidecar.call("index/search", queries=["quiet"], chatId="other")["results"]
    assert result["hits"]
    removed = purge(sidecar, scope="project", projectPath=str(project))["removed"]
    assert removed["sources"] == 2
    assert holding(spawn, word) == []
