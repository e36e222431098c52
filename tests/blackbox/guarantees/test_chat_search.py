"""Messages are found by what a person types: any script, beginnings, parts of names; with offsets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

Json = dict[str, Any]

SAID = {
    "alpha": "The alphabet begins with alpha, then beta",
    "names": "Call getUserName() of PacketResponder in src/http_server.py, not re.compile",
    "japanese": "東京都庁に行きました。ｶﾞﾗｽの建物です。",
    "chinese": "请使用GPT模型回答数据库的问题",
    "korean": "웹서버를 다시 시작했습니다",
    "thai": "ฉันกินข้าวแล้ว",
    "accents": "Das Café in der Straße hat geöffnet 🎈",
    "wide": "ＡＢＣ１２３ is wide",
    "long": f"{'word ' * 3000}needle 🎈 {'more ' * 3000}",
}


@pytest.fixture
def sidecar(spawn: Spawner) -> Sidecar:
    made = spawn()
    for chat, text in SAID.items():
        made.run(text, chatId=chat)
    return made


def hits(sidecar: Sidecar, query: str, **more: Any) -> list[Json]:
    items: list[Json] = sidecar.call("chat/search", query=query, **more)["items"]
    return items


@pytest.mark.parametrize(
    ("query", "chat", "match"),
    [
        ("al", "alpha", "al"),
        ("alph", "alpha", "alph"),
        ("ALPHABET beg", "alpha", "alphabet"),
        ('"then beta"', "alpha", "then beta"),
        ("username", "names", "UserName"),
        ("Name", "names", "Name"),
        ("responder", "names", "Responder"),
        ("http_server.py", "names", "http_server.py"),
        ("erver", "names", "erver"),
        ("東京", "japanese", "東京"),
        ("都庁", "japanese", "都庁"),
        ("庁に行き", "japanese", "庁に行き"),
        ("庁", "japanese", "庁"),
        ("ガラス", "japanese", "ｶﾞﾗｽ"),
        ("数据库", "chinese", "数据库"),
        ("gpt", "chinese", "GPT"),
        ("GPT模型", "chinese", "GPT模型"),
        ("서버", "korean", "서버"),
        ("กินข้าว", "thai", "กินข้าว"),
        ("cafe", "accents", "Café"),
        ("strasse", "accents", "Straße"),
        ("🎈 GEOFF", "accents", "geöff"),
        ("abc123", "wide", "ＡＢＣ１２３"),
        ("needle", "long", "needle"),
    ],
)
def test_a_message_is_found_and_its_words_are_marked(
    sidecar: Sidecar, query: str, chat: str, match: str
) -> None:
    found = hits(sidecar, query)
    assert {hit["chatId"] for hit in found} == {chat}
    for hit in found:
        shown = hit["snippet"]
        marked = [shown[one["start"] : one["end"]] for one in hit["matches"]]
        assert match in marked
        body = shown.removeprefix("…") if hit["snippetStart"] else shown
        assert SAID[chat][hit["snippetStart"] :].startswith(body.removesuffix("…"))


@pytest.mark.parametrize(
    "query", ["", '"', '""', "*", "AND", "-x", "a:b", "NEAR(a", "^", "''", "\0", "京都市", "zzz alph"]
)
def test_what_nothing_contains_is_not_found_and_no_error(sidecar: Sidecar, query: str) -> None:
    assert hits(sidecar, query) == []


def test_whole_words_come_before_beginnings_and_pages_follow_one_another(sidecar: Sidecar) -> None:
    sidecar.run("alphabetical alphabets", chatId="more")
    sidecar.run("alpha", chatId="most")
    first = sidecar.call("chat/search", query="alpha", limit=3)
    listed = [hit["chatId"] for hit in first["items"]]
    assert set(listed[:2]) == {"most"}
    while "nextCursor" in first:
        first = sidecar.call("chat/search", query="alpha", limit=3, cursor=first["nextCursor"])
        listed += [hit["chatId"] for hit in first["items"]]
    assert sorted(listed) == ["alpha"] * 2 + ["more"] * 2 + ["most"] * 2


def test_a_deleted_chat_is_not_found(sidecar: Sidecar) -> None:
    sidecar.call("chat/delete", chatId="chinese")
    assert hits(sidecar, "数据库") == []
