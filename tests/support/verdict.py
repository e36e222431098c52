"""What a journal must say about what was seen: nothing lost, nothing altered, no rule of the stream broken."""

from __future__ import annotations

from collections import Counter

from .reading import without_deltas
from .referee import Referee
from .wire import Json


def missing_events(seen: dict[str, list[Json]], journals: dict[str, list[Json]]) -> list[str]:
    """What one sidecar said and the journal does not hold, word for word."""
    lost = []
    for session, events in seen.items():
        stored = {event["seq"]: event for event in journals[session]}
        lost += [
            f"{session}: {event}" for event in without_deltas(events) if stored.get(event["seq"]) != event
        ]
        kept = {item: "".join(texts) for item, texts in _texts_by_item(journals[session]).items()}
        said = [(item, text) for item, texts in _texts_by_item(events).items() for text in texts]
        lost += [f"{session}: {item}: {text!r}" for item, text in said if text not in kept.get(item, "")]
    return lost


def journal_violations(session: str, journal: list[Json]) -> list[str]:
    """Gaps, doubles and turns without an end in the journal itself; and prompts that ran twice."""
    referee = Referee()
    referee.watch(session, journal[0]["epoch"])
    for event in journal:
        referee.received({"jsonrpc": "2.0", "method": "event", "params": event})
    ran = Counter(e["data"]["promptId"] for e in journal if e["type"] == "prompt.accepted")
    twice = [f"{session}: {prompt} ran {count} times" for prompt, count in ran.items() if count > 1]
    return referee.finish(all_answered=True, all_ended=True) + twice


def _texts_by_item(events: list[Json]) -> dict[str, list[str]]:
    """What each item said, a text for each stretch of deltas that follow one another without a gap."""
    texts: dict[str, list[str]] = {}
    ends: dict[str, int] = {}
    for event in events:
        if event["type"].endswith(".delta"):
            item, text = event["data"]["itemId"], event["data"]["text"]
            first: int = event.get("from") or event["seq"]
            if ends.get(item) != first - 1:
                texts.setdefault(item, []).append("")
            texts[item][-1] += text
            ends[item] = event["seq"]
    return texts
