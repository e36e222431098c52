"""Which events a method causes, and whether they come before or after its answer."""

from __future__ import annotations

from typing import NamedTuple

from sidecar_protocol.catalog import Method


class Order(NamedTuple):
    """The events of a method, and what is promised of their order; no events when both are empty."""

    events: tuple[str, ...] = ()
    promise: str = ""


_AFTER = "They follow the answer."
_EITHER = "They are stored before the answer, and sent before or after it."

_OF_TURN = ("turn", "context", "permission", "input", "patch", "files", "compaction")
"""The first words of events that come in turns, and that other methods cause too."""

_TURN = ("prompt.accepted", "turn.started", "chat.state")

_OF_METHOD: dict[str, Order] = {
    "chat/open": Order(
        promise="The answer comes first, then the events of `replay`, then live ones."
        " With `attached` nothing is replayed."
    ),
    "chat/fork": Order(promise="The answer comes first, then live events of the new chat."),
    "chat/close": Order(promise="No event of the chat follows the answer."),
    "chat/delete": Order(("chat.deleted",), "Readers in other connections get it as their last event."),
    "chat/rename": Order(("chat.renamed",), _EITHER),
    "chat/configure": Order(("config.updated",), _EITHER),
    "chat/import": Order(
        ("import.started", "import.ended"), "The answer comes when the import has ended and all is stored."
    ),
    "chat/rewind": Order(("files.updated", "chat.rewound"), _EITHER),
    "chat/compact": Order(
        ("compaction.started", "compaction.ended", "config.updated"),
        "They are sent while the compaction runs, before or after; the last with `postponeTurns`.",
    ),
    "chat/uncompact": Order(("compaction.undone",), _EITHER),
    "prompt/send": Order(
        (*_TURN, "prompt.queued", "command.result", "chat.rewound", "checkpoint.saved", "chat.renamed"),
        f"{_AFTER} Which come depends on `disposition`; all events of the turn follow, `turn.ended` last."
        " `chat.rewound` comes with `replace`; `checkpoint.saved` is of a command, and `chat.renamed` of"
        " the title that a chat gets by itself after its first answer.",
    ),
    "turn/retry": Order(("chat.rewound", *_TURN), f"{_AFTER} `turn.ended` is the last of the turn."),
    "prompt/edit": Order(("prompt.edited",), _EITHER),
    "prompt/remove": Order(("prompt.removed",), _EITHER),
    "prompt/resume": Order(("queue.updated", *_TURN), _AFTER),
    "turn/cancel": Order(
        ("turn.ended", "queue.updated", "chat.state"),
        "`turn.ended` precedes the answer on a connection that has the chat open.",
    ),
    "files/open": Order(("files.updated",), _EITHER),
    "files/close": Order(("files.updated",), _EITHER),
    "files/pin": Order(("files.updated",), _EITHER),
    "files/unpin": Order(("files.updated",), _EITHER),
    "files/clear": Order(("files.updated",), _EITHER),
    "patches/clear": Order(("patches.cleared",), _EITHER),
    "patches/revert": Order(("patch.recorded",), _EITHER),
    "patches/apply": Order(("patch.recorded",), _EITHER),
    "permission/answer": Order(("permission.resolved", "chat.state"), _EITHER),
    "input/answer": Order(("input.resolved", "chat.state"), _EITHER),
    "snapshots/restore": Order(("files.updated", "snapshot.restored"), _EITHER),
    "data/purge": Order(("chat.deleted",), "Readers of the chats get it as their last event."),
    "projects/rebind": Order(("config.updated",), _EITHER),
    "shutdown": Order(("turn.ended",), "Running turns end before the answer."),
}


def order_of(method: Method) -> Order:
    return _OF_METHOD.get(method.name, Order())


def when_in_words(event: str) -> str:
    """When an event comes: before or after which answers."""
    causes = [
        f"`{name}`: {order.promise[0].lower()}{order.promise[1:]}"
        for name, order in _OF_METHOD.items()
        if event in order.events
    ]
    in_turn = "Comes while a turn runs: after the answer to the request that started it"
    last = "." if event == "turn.ended" else ", before its `turn.ended`."
    if not causes:
        return in_turn + last
    told = "Caused by " + " ".join(causes)
    return f"{in_turn}{last} {told}" if event.partition(".")[0] in _OF_TURN else told


def order_in_words(method: Method) -> str:
    """The sentence of the reference page."""
    order = order_of(method)
    if not order.events:
        return order.promise or "Causes no events."
    return f"Events: {', '.join(f'`{name}`' for name in order.events)}. {order.promise}"
