"""Names, archive, list and search, and how another process hears of a change."""

from __future__ import annotations

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json


def ids(result: Json) -> list[str]:
    return [item["chatId"] for item in result["items"]]


def test_the_list_shows_chats_by_newest_activity(sidecar: Sidecar) -> None:
    for chat in ("a", "b", "c", "a"):
        sidecar.run(f"hello from {chat}", chatId=chat)
    listed = sidecar.call("chat/list")["items"]
    assert [item["chatId"] for item in listed] == ["a", "c", "b"]
    assert [item["turns"] for item in listed] == [2, 1, 1]
    assert {item["state"] for item in listed} == {"idle"}
    assert "hello" in listed[0]["preview"]
    assert all(item["createdAt"] <= item["lastActivity"] for item in listed)


def test_pages_of_the_list_follow_one_another(sidecar: Sidecar) -> None:
    for number in range(7):
        sidecar.call("chat/open", chatId=f"c{number}")
    seen: list[str] = []
    params: Json = {"limit": 3}
    while True:
        page = sidecar.call("chat/list", **params)
        seen += ids(page)
        if not page.get("nextCursor"):
            break
        params["cursor"] = page["nextCursor"]
    assert sorted(seen) == [f"c{number}" for number in range(7)]


def test_a_title_is_taken_and_given_back(sidecar: Sidecar) -> None:
    session = sidecar.run("punch cards of old", chatId="c")["sessionId"]
    automatic = sidecar.call("chat/list")["items"][0]["title"]
    assert sidecar.call("chat/rename", chatId="c", title="Mine")["title"] == "Mine"
    assert sidecar.call("chat/list")["items"][0]["title"] == "Mine"
    assert sidecar.call("chat/rename", chatId="c", title=None)["title"] == automatic
    renamed = [e["data"]["by"] for e in sidecar.events(session, "chat.renamed")]
    assert "user" in renamed


def test_a_title_of_the_user_outlives_more_prompts_and_a_restart(spawn: Spawner) -> None:
    first = spawn()
    first.call("chat/open", chatId="c")
    first.call("chat/rename", chatId="c", title="Mine")
    first.run("hello there", chatId="c")
    first.kill()
    assert spawn().call("chat/open", chatId="c")["title"] == "Mine"


def test_renaming_a_ghost_is_not_found(sidecar: Sidecar) -> None:
    assert sidecar.refused("chat/rename", chatId="ghost", title="x").code == -32002
    assert sidecar.refused("chat/archive", chatId="ghost").code == -32002


def test_an_archived_chat_leaves_the_usual_list(sidecar: Sidecar) -> None:
    for chat in ("a", "b"):
        sidecar.call("chat/open", chatId=chat)
    for _ in range(2):
        assert sidecar.call("chat/archive", chatId="a")["archived"] is True
    assert ids(sidecar.call("chat/list", archived=False)) == ["b"]
    assert ids(sidecar.call("chat/list", archived=True)) == ["a"]
    sidecar.call("chat/archive", chatId="a", archived=False)
    assert sorted(ids(sidecar.call("chat/list", archived=False))) == ["a", "b"]


def test_the_list_is_of_one_namespace_or_project(sidecar: Sidecar, spawn: Spawner) -> None:
    sidecar.call("chat/open", chatId="a", projectPath=str(spawn.folder))
    sidecar.call("chat/open", chatId="b", namespace="work")
    assert ids(sidecar.call("chat/list", projectPath=str(spawn.folder))) == ["a"]
    assert ids(sidecar.call("chat/list", namespace="work")) == ["b"]


def test_a_query_filters_the_list(sidecar: Sidecar) -> None:
    for chat, title in (("a", "Punch cards"), ("b", "Looms")):
        sidecar.call("chat/open", chatId=chat)
        sidecar.call("chat/rename", chatId=chat, title=title)
    assert ids(sidecar.call("chat/list", query="punch")) == ["a"]
    assert ids(sidecar.call("chat/list", query="%")) == []


def test_words_are_found_with_their_place(sidecar: Sidecar) -> None:
    sidecar.run("the analytical engine weaves algebraic patterns", chatId="a")
    sidecar.run("nothing of the kind", chatId="b")
    hits = sidecar.call("chat/search", query="algebraic")["items"]
    assert {hit["chatId"] for hit in hits} == {"a"}
    (turn,) = sidecar.call("chat/history", chatId="a")["turns"]
    assert hits[0]["turnId"] == turn["id"]
    assert hits[0]["itemId"] in [item["id"] for item in turn["items"]]
    assert "algebraic" in hits[0]["snippet"]


def test_no_query_is_an_error_of_syntax(sidecar: Sidecar) -> None:
    sidecar.run("plain words", chatId="a")
    queries = ['"', "AND", "NOT x", "a*", "(", "col:x", "NEAR(a b)", "%", "'; DROP TABLE", "", "ä"]
    assert [sidecar.call("chat/search", query=query)["items"] for query in queries] == [[] for _ in queries]


def test_another_process_hears_of_a_new_a_renamed_and_a_deleted_chat(spawn: Spawner) -> None:
    doer, listener = spawn(), spawn()
    listener.call("chat/list")
    steps: list[tuple[str, Json]] = [
        ("open", {}),
        ("rename", {"title": "Mine"}),
        ("archive", {}),
        ("delete", {}),
    ]
    for step, params in steps:
        heard = len(listener.statuses("chats.changed"))
        session = doer.call(f"chat/{step}", chatId="c", **params)["sessionId"]
        listener.wait_until(lambda n=heard: len(listener.statuses("chats.changed")) > n, 5, step)  # type: ignore[misc]
        assert listener.statuses("chats.changed")[-1]["data"]["sessionId"] == session
    assert listener.statuses("chats.changed")[-1]["data"]["change"] == "deleted"


def test_a_rename_reaches_a_reader_as_an_event(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    session = writer.call("chat/open", chatId="c")["sessionId"]
    reader.call("chat/open", chatId="c")
    writer.call("chat/rename", chatId="c", title="Mine")
    assert reader.wait_event(session, "chat.renamed")["data"]["title"] == "Mine"
