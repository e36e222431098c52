"""`/stats` and `/purge` in a prompt."""

from __future__ import annotations

from typing import Any

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .database_files import CANARY, folder, holding


def command(sidecar: Sidecar, text: str, chat: str = "c") -> dict[str, Any]:
    sent = sidecar.say(text, chatId=chat)
    result = sidecar.wait_event(
        sent["sessionId"], lambda e: e["type"] == "command.result" and e["seq"] == sent["seq"]
    )
    data: dict[str, Any] = result["data"]
    return data


def test_stats_tell_what_the_method_tells(sidecar: Sidecar) -> None:
    sidecar.run("one two three", chatId="c")
    asked = sidecar.call("stats/read", scope="chat", chatId="c")
    told = command(sidecar, "/stats")["data"]
    moving = ("events", "databaseBytes", "messages", "lastActivity")
    assert {**told, **dict.fromkeys(moving)} == {**asked, **dict.fromkeys(moving)}


def test_stats_are_drawn_and_say_what_was_not_measured(sidecar: Sidecar) -> None:
    sidecar.run("one two three", chatId="c")
    markdown = command(sidecar, "/stats all")["markdown"]
    assert "| sent to models | 3 | ████████████████████ |" in markdown
    assert "Kept out of the window: not measured" in markdown
    assert "Cost: not known" in markdown


def test_stats_of_a_project_need_one(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    for text in (
        "/stats project",
        "/stats nonsense",
        "/purge project",
        "/purge nonsense",
        "/purge all one two",
    ):
        assert sidecar.refused("prompt/send", chatId="c", promptId=text, text=text).code == -32602


def test_purge_names_its_word_and_removes_nothing_without_it(sidecar: Sidecar) -> None:
    sidecar.run("one", chatId="c")
    sidecar.run("two", chatId="c")
    asked = command(sidecar, "/purge")
    assert (asked["data"]["word"], asked["data"]["removed"]["turns"]) == ("delete-2-turns", 2)
    assert "/purge chat delete-2-turns" in asked["markdown"]
    for wrong in ("yes", "delete-1-turns", "delete-2-chats"):
        refusal = sidecar.refused("prompt/send", chatId="c", promptId=wrong, text=f"/purge chat {wrong}")
        assert (refusal.code, refusal.detail("word")) == (-32602, "delete-2-turns")
    assert len(sidecar.call("chat/history", chatId="c")["turns"]) == 2


def test_purge_tells_its_answer_before_the_chat_is_gone(spawn: Spawner) -> None:
    sidecar = spawn()
    sidecar.run(f"say {CANARY}", chatId="c")
    sidecar.run("quiet", chatId="other")
    answer = command(sidecar, "/purge chat delete-1-turn")
    assert (answer["data"]["removed"]["chats"], answer["data"]["left"]) == (1, [])
    session = next(iter(sidecar.seen()))
    sidecar.wait_event(session, "chat.deleted")
    assert holding(spawn) == []
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["other"]


def test_purge_of_a_project_takes_the_chat_that_asks_for_it_last(spawn: Spawner) -> None:
    sidecar, project = spawn(), str(folder(spawn, "project"))
    for chat in ("c", "d"):
        sidecar.run(f"say {CANARY}", chatId=chat, projectPath=project)
    sidecar.run("quiet", chatId="elsewhere")
    word = command(sidecar, "/purge project")["data"]["word"]
    assert word == "delete-2-chats"
    assert command(sidecar, f"/purge project {word}")["data"]["removed"]["chats"] == 2
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["elsewhere"]
    assert holding(spawn) == []
