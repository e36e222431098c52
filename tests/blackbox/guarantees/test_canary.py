"""Guarantee 13: nothing of one chat appears in another, also for ids that slug alike."""

from __future__ import annotations

import json

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

ALIKE = ["a/b", "a b", "a-b", "A B", "a  b", "a.b", "-a-b-", "a\u00a0b"]


def test_ids_that_slug_alike_are_chats_of_their_own(sidecar: Sidecar) -> None:
    ids = []
    for number, chat in enumerate(ALIKE):
        for turn in range(3):
            ids.append(
                sidecar.ask(
                    "prompt/send", chatId=chat, promptId=f"p{turn}", text=f"canary{number} {turn} " * 20
                )
            )
    sent = [sidecar.result(id) for id in ids]
    for result in sent:
        sidecar.wait_turn(result["sessionId"], result["turnId"])
    assert len({result["sessionId"] for result in sent}) == len(ALIKE)
    for number, chat in enumerate(ALIKE):
        session = sent[number * 3]["sessionId"]
        seen = json.dumps(
            [
                sidecar.events(session),
                sidecar.journal(session),
                sidecar.call("chat/history", chatId=chat),
                sidecar.call("chat/export", chatId=chat),
                sidecar.call("chat/open", chatId=chat),
            ]
        )
        others = [other for other in range(len(ALIKE)) if other != number and f"canary{other} " in seen]
        assert (others, f"canary{number} " in seen) == ([], True)


def test_a_namespace_sees_nothing_of_another(sidecar: Sidecar) -> None:
    sidecar.run("canaryone", chatId="c", namespace="one")
    sidecar.run("plain", chatId="c", namespace="two")
    two = [
        sidecar.call("chat/history", chatId="c", namespace="two"),
        sidecar.call("chat/list", namespace="two"),
        sidecar.call("chat/search", query="canaryone", namespace="two"),
    ]
    assert "canaryone" not in json.dumps(two)


def test_a_reader_of_one_chat_hears_nothing_of_the_others(spawn: Spawner) -> None:
    writer, reader = spawn(), spawn()
    mine = reader.call("chat/open", chatId="a/b")["sessionId"]
    writer.run("canaryother", chatId="a b")
    ended = writer.run("mine", chatId="a/b")
    reader.wait_turn(mine, ended["turnId"])
    assert "canaryother" not in json.dumps(reader.frames)
