"""Chats that were idle for too long, and blobs that nobody named, are removed by themselves, and it is reported."""

from __future__ import annotations

import base64

from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

from .database_files import CANARY, ended, holding, sql

WEEK_MS = 7 * 24 * 3600 * 1000


def kept(spawn: Spawner, days: int) -> Sidecar:
    config = spawn.folder / "retention.toml"
    config.write_text(f"[session]\nretention_days = {days}\n")
    return spawn("--config", str(config))


def aged(spawn: Spawner, chat: str) -> None:
    """Let a week pass for a chat, and for the blobs that are no five bytes long."""
    sql(
        spawn,
        f"UPDATE chats SET last_activity = last_activity - {WEEK_MS} WHERE key = '{chat}'",
        f"UPDATE blobs SET created_at = created_at - {WEEK_MS} WHERE size <> 5",
    )


def test_an_idle_chat_is_purged_soon_after_the_start_and_counted(spawn: Spawner) -> None:
    first = spawn()
    first.run(f"say {CANARY}", chatId="old")
    first.run("hello", chatId="new")
    ended(first)
    aged(spawn, "old")
    sidecar = kept(spawn, 6)
    status = sidecar.wait_frame(lambda f: "purged" in f.get("params", {}).get("data", {}))["params"]
    assert (status["type"], status["data"]["purged"], status["data"]["state"]) == ("storage", 1, "ready")
    assert {name: status["data"]["removed"][name] for name in ("chats", "turns", "messages")} == {
        "chats": 1,
        "turns": 1,
        "messages": 2,
    }
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["new"]
    ended(sidecar)
    assert holding(spawn) == []


def test_without_a_retention_chats_stay_and_a_blob_that_nobody_named_goes(spawn: Spawner) -> None:
    first = spawn()
    first.run("hello", chatId="old")
    forget_blob(first)
    fresh = first.call("blob/put", data=base64.b64encode(b"fresh").decode(), mimeType="text/plain")
    ended(first)
    aged(spawn, "old")
    assert holding(spawn)
    sidecar = kept(spawn, 0)
    assert swept(sidecar) == {"blobs": 1}
    assert [item["chatId"] for item in sidecar.call("chat/list")["items"]] == ["old"]
    assert sidecar.call("blob/read", blobId=fresh["blobId"])["total"] == 5
    assert holding(spawn) == []


def test_a_chat_that_another_process_answers_stays(spawn: Spawner) -> None:
    owner = spawn(model=write_script(spawn.folder))
    owner.run("quick", chatId="old")
    sent = owner.say("hang", chatId="busy")
    owner.wait_event(sent["sessionId"], "message.delta")
    for chat in ("old", "busy"):
        aged(spawn, chat)
    assert swept(kept(spawn, 6))["chats"] == 1
    assert owner.call("turn/cancel", chatId="busy")["outcome"] == "cancelled"


def forget_blob(sidecar: Sidecar) -> None:
    """Put a blob and never name it; a week passes for it with the chats."""
    sidecar.call("blob/put", data=base64.b64encode(CANARY.encode()).decode(), mimeType="text/plain")


def swept(sidecar: Sidecar) -> dict[str, int]:
    """What the sidecar tells to have removed by itself."""
    frame = sidecar.wait_frame(lambda f: "removed" in f.get("params", {}).get("data", {}))
    removed: dict[str, int] = frame["params"]["data"]["removed"]
    return removed
