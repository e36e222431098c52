"""Guarantee 1: a request is answered after what it changed is committed, and survives a kill right behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.scripts import write_script
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

Shows = Callable[[Sidecar], bool]


def _listed(test: Callable[[Json], bool], **params: object) -> Shows:
    return lambda sidecar: any(test(item) for item in sidecar.call("chat/list", **params)["items"])


def _queued(test: Callable[[list[Json]], bool]) -> Shows:
    return lambda sidecar: test(sidecar.call("prompt/list", chatId="busy")["queue"]["items"])


LINE = '{"role":"user","text":"Hello"}\n'
CHANGES: dict[str, tuple[str, Json, Shows]] = {
    "open": ("chat/open", {"chatId": "new"}, _listed(lambda item: item["chatId"] == "new")),
    "rename": ("chat/rename", {"title": "Mine"}, _listed(lambda item: item["title"] == "Mine")),
    "archive": ("chat/archive", {}, _listed(lambda item: item["chatId"] == "c", archived=True)),
    "configure": ("chat/configure", {"set": {"meta": 5}}, _listed(lambda item: item.get("meta") == 5)),
    "import": (
        "chat/import",
        {"chatId": "i", "data": LINE},
        _listed(lambda item: (item["chatId"], item["turns"]) == ("i", 1)),
    ),
    "delete": (
        "chat/delete",
        {},
        lambda sidecar: all(item["chatId"] != "c" for item in sidecar.call("chat/list")["items"]),
    ),
    "send": (
        "prompt/send",
        {"promptId": "p1", "text": "hello"},
        lambda sidecar: sidecar.say("again", chatId="c", prompt="p1")["disposition"] == "duplicate",
    ),
    "queue": (
        "prompt/send",
        {"chatId": "busy", "promptId": "p2", "text": "wait"},
        _queued(lambda items: [item["promptId"] for item in items] == ["p1", "p2"]),
    ),
    "edit": (
        "prompt/edit",
        {"chatId": "busy", "promptId": "p1", "content": [{"type": "text", "text": "new"}]},
        _queued(lambda items: items[0]["content"][0]["text"] == "new"),
    ),
    "remove": ("prompt/remove", {"chatId": "busy", "promptId": "p1"}, _queued(lambda items: items == [])),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_answered_survives_a_kill(spawn: Spawner, change: str) -> None:
    method, params, shows = CHANGES[change]
    first = spawn(model=write_script(spawn.folder))
    first.call("chat/open", chatId="c")
    first.say("hang", chatId="busy", prompt="p0")
    first.say("next", chatId="busy", prompt="p1")
    first.call(method, **{"chatId": "c", **params})
    first.kill()
    second = spawn(model=write_script(spawn.folder))
    assert shows(second)
