"""What is not there is said so, by every method, and nothing is made in passing."""

from __future__ import annotations

from tests.support.sidecar import Sidecar
from tests.support.wire import Json

ASKED: dict[str, Json] = {
    "chat/rename": {"title": "x"},
    "chat/archive": {},
    "chat/history": {},
    "chat/export": {},
    "chat/configure": {"set": {"effort": "low"}},
    "prompt/list": {},
    "prompt/edit": {"promptId": "p", "content": [{"type": "text", "text": "x"}]},
    "prompt/remove": {"promptId": "p"},
    "prompt/resume": {},
    "turn/cancel": {},
    "turn/retry": {"promptId": "p"},
    "events/read": {"after": {"epoch": "e", "seq": 0}},
    "stats/read": {"scope": "chat"},
}


def test_a_chat_that_never_was_is_not_found_by_any_method(sidecar: Sidecar) -> None:
    codes = {
        method: sidecar.refused(method, chatId="ghost", **params).code for method, params in ASKED.items()
    }
    assert codes == dict.fromkeys(ASKED, -32002)
    assert sidecar.call("chat/list")["items"] == []


def test_a_deleted_chat_is_deleted_for_every_method(sidecar: Sidecar) -> None:
    sidecar.run("hello", chatId="gone")
    sidecar.call("chat/delete", chatId="gone")
    codes = {
        method: sidecar.refused(method, chatId="gone", **params).code for method, params in ASKED.items()
    }
    assert codes == dict.fromkeys(ASKED, -32009)
    assert sidecar.call("chat/list")["items"] == []


def test_closing_what_is_not_open_changes_nothing(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="c")
    assert sidecar.call("chat/close", chatId="c")["closed"] is True
    assert sidecar.call("chat/close", chatId="c")["closed"] is False
    assert sidecar.call("chat/open", chatId="c")["status"] == "resumed"
