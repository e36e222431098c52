"""The rules of the stream, checked on everything that one connection saw, in the order in which it saw it.

Dense sequence numbers, the result before the events, one end for each turn and item, one answer for each
request. Pure: fed with what was asked and what came, it collects violations and never raises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .wire import Json, message_violations

ENDS = {"message.completed": "message", "thought.completed": "thought", "tool.ended": "tool"}
"""The one terminal event of each kind of item that starts."""

MAX_VIOLATIONS = 10
"""One broken rule often breaks it for each event that follows; the first ones tell the story."""

_OPENING = {"chat/open", "chat/fork", "prompt/send", "prompt/resume", "turn/retry"}


@dataclass
class OpenItem:
    """An item between its first and its last event."""

    turn: str | None
    text: list[str] = field(default_factory=list)


@dataclass
class AttachedChat:
    """What a connection must see of one chat from the moment that it is attached."""

    epoch: str | None
    last: int | None
    """None, both, where the answer that attached it does not say what comes first."""
    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    items: dict[str, OpenItem] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    waiting: dict[str, str | None] = field(default_factory=dict)
    """Permissions and inputs that nobody has answered yet, with the turn that waits."""


class Referee:
    """`lenient` is for tests that write bytes of their own: an answer to an unknown id is then no offence."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.lenient = False
        self._asked: dict[str | int, str] = {}
        self._prompts: dict[tuple[str, str], list[str | int]] = {}
        self._answered: set[str | int] = set()
        self._attached: dict[str, AttachedChat] = {}

    def watch(self, session: str, epoch: str) -> None:
        """Expect the whole journal of a chat, from its first event."""
        self._attached[session] = AttachedChat(epoch, 0)

    def asked(self, id: str | int, method: str, params: Any) -> None:
        self._asked[id] = method
        if not isinstance(params, dict):
            return  # a test asks wrongly on purpose
        if isinstance(params.get("promptId"), str) and isinstance(params.get("chatId"), str):
            self._prompts.setdefault((params["chatId"], params["promptId"]), []).append(id)

    def received(self, message: Any) -> None:
        """Take one frame, already parsed as JSON."""
        if not isinstance(message, dict):
            return self._violation(f"a frame that is no object: {message!r}")
        id = message.get("id")
        method = self._asked[id] if isinstance(id, str | int) and id in self._asked else None
        wrong = message_violations(message, method)
        self.violations += wrong
        if "method" not in message:
            return self._answer(id, method, {} if wrong else message)
        return self._event(message["params"]) if message["method"] == "event" and not wrong else None

    def finish(self, *, all_answered: bool, all_ended: bool = False) -> list[str]:
        """The connection is over: did every request need its answer by now, and every turn its end?"""
        open_ids = self._asked.keys() - self._answered
        if all_answered and open_ids:
            self._violation(f"never answered: {[(id, self._asked[id]) for id in open_ids]}")
        for session, seen in self._attached.items() if all_ended else ():
            for turn in seen.started - seen.ended:
                self._violation(f"{session}: turn {turn} never ended")
        return self.violations

    def _answer(self, id: Any, method: str | None, message: Json) -> None:
        if method is None:
            return None if self.lenient else self._violation(f"an answer to nothing asked: {message!r:.300}")
        if id in self._answered:
            return self._violation(f"a second answer to {id!r} ({method})")
        self._answered.add(id)
        result = message.get("result")
        return self._attach(method, result) if result and method != "rpc.discover" else None

    def _attach(self, method: str, result: Json) -> None:
        session = result.get("sessionId", "")
        if method in ("chat/open", "chat/fork") and result["status"] != "attached":
            replay = result["replay"]
            last = replay["from"] - 1 if replay["kind"] == "events" else result["asOf"]["seq"]
            self._attached[session] = AttachedChat(result["epoch"], last)
        elif method in _OPENING and session not in self._attached:
            if method == "chat/open":
                self._violation(f"{session}: attached to a chat that was not open here")
            self._attached[session] = AttachedChat(result.get("epoch"), None)
        elif method in ("chat/close", "chat/delete"):
            self._attached.pop(session, None)
        elif method == "turn/cancel" and result["outcome"] == "cancelled" and session in self._attached:
            last = self._attached[session].last
            if last is None or result.get("endSeq", 0) > last:
                self._violation(f"{session}: turn/cancel answered before seq {result.get('endSeq')} came")

    def _event(self, event: Json) -> None:
        seen = self._attached.get(event["sessionId"])
        first: int = event.get("from") or event["seq"]
        if seen is None and event["type"] == "chat.deleted":
            return None  # Who deletes a chat may be told so, too.
        if seen is None:
            return self._violation(f"an event of a chat that is not open here: {event!r:.300}")
        if event["epoch"] != (seen.epoch or event["epoch"]):
            self._violation(f"epoch {event['epoch']} in a stream of {seen.epoch}")
        if seen.last is not None and first != seen.last + 1:
            kind = "gap" if first > seen.last else "doubled"
            self._violation(
                f"{event['sessionId']}: {kind}: {event['type']} {first}..{event['seq']} after {seen.last}"
            )
        seen.last = event["seq"]
        self._prompt(event)
        self._turn(seen, event)
        self._item(seen, event)
        self._request(seen, event)
        if event["type"] == "chat.deleted":
            del self._attached[event["sessionId"]]
        return None

    def _prompt(self, event: Json) -> None:
        """The result of `prompt/send` comes before that prompt's events."""
        if event["type"] not in ("prompt.accepted", "prompt.queued"):
            return
        prompt = event["data"]["promptId"]
        asks = self._prompts.get((event["chatId"], prompt), [])
        if asks and not self._answered.intersection(asks):
            self._violation(f"{event['type']} of {prompt} before the answer to its prompt/send")

    def _turn(self, seen: AttachedChat, event: Json) -> None:
        turn = event.get("turnId")
        if turn in seen.ended:
            self._violation(f"{event['type']} {event['seq']} after turn.ended of {turn}")
        if event["type"] == "turn.started":
            if turn in seen.started:
                self._violation(f"a second turn.started of {turn}")
            seen.started.add(str(turn))
        if event["type"] == "turn.ended":
            seen.ended.add(str(turn))
            for id, item in seen.items.items():
                if item.turn == turn:
                    self._violation(f"turn.ended of {turn} while item {id} is unfinished")
            for id, waits in seen.waiting.items():
                if waits == turn:
                    self._violation(f"turn.ended of {turn} while {id} waits for an answer")

    def _item(self, seen: AttachedChat, event: Json) -> None:
        kind, data = event["type"], event["data"]
        if kind in ("message.started", "thought.started", "tool.started"):
            if data["item"]["id"] in seen.items or data["item"]["id"] in seen.finished:
                self._violation(f"a second {kind} of {data['item']['id']}")
            seen.items[data["item"]["id"]] = OpenItem(event.get("turnId"))
        elif kind.endswith((".delta", ".output")):
            if data["itemId"] in seen.finished:
                self._violation(f"{kind} after the end of item {data['itemId']}")
            if data["itemId"] in seen.items:
                seen.items[data["itemId"]].text.append(data["text"])
        elif kind in ENDS:
            self._end_item(seen, kind, data["item"])

    def _request(self, seen: AttachedChat, event: Json) -> None:
        """What is asked of a person is resolved once, and before its turn ends."""
        kind, _, what = event["type"].partition(".")
        if kind not in ("permission", "input"):
            return
        id = event["data"][f"{kind}Id"]
        if what == "requested":
            seen.waiting[id] = event.get("turnId")
        elif id in seen.finished:
            self._violation(f"a second {event['type']} of {id}")
        else:
            seen.waiting.pop(id, None)
            seen.finished.add(id)

    def _end_item(self, seen: AttachedChat, kind: str, item: Json) -> None:
        if item["id"] in seen.finished:
            self._violation(f"a second end ({kind}) of item {item['id']}")
        if item["status"] == "running":
            self._violation(f"{kind} of item {item['id']} that still runs")
        seen.finished.add(item["id"])
        streaming = seen.items.pop(item["id"], None)
        if streaming and kind != "tool.ended" and "".join(streaming.text) != (item.get("text") or ""):
            self._violation(f"{kind}: the text of {item['id']} is not the sum of its deltas")

    def _violation(self, text: str) -> None:
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(text)
