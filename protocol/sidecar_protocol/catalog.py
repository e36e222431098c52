"""THE TABLE: a method exists because it stands here. Dispatch, schema, reference page and client types follow it.

Its rows are in `methods`, one module per subject.
"""

from __future__ import annotations

from .methods.base import Method, Notice, Question
from .methods.chats import CHATS
from .methods.data import DATA
from .methods.hooks import HOOKS
from .methods.index import INDEX
from .methods.snapshots import SNAPSHOTS
from .methods.system import SYSTEM
from .methods.tools import QUESTIONS, TOOLS

__all__ = ["METHODS", "NOTIFICATIONS", "REQUESTS", "Method", "Notice", "Question"]

METHODS: dict[str, Method] = {
    method.name: method for method in [*CHATS, *TOOLS, *INDEX, *DATA, *SNAPSHOTS, *HOOKS, *SYSTEM]
}
"""What the client may ask of the sidecar."""

REQUESTS: dict[str, Question] = {question.name: question for question in QUESTIONS}
"""What the sidecar may ask of the client."""

NOTIFICATIONS: dict[str, Notice] = {
    notice.name: notice
    for notice in [
        Notice("exit", "Empty", "client", "Leave now."),
        Notice(
            "$/cancelRequest",
            "CancelRequestParams",
            "both",
            "The request is not needed any more: it answers -32800 unless it has committed.",
        ),
        Notice("event", "Event", "sidecar", "Something happened in a chat."),
        Notice("status", "Status", "sidecar", "Something happened that belongs to no chat."),
    ]
}
