"""Notes for scripts about calls that were denied because nobody could be asked. Knows events, not the output."""

from __future__ import annotations

from typing import Any

from sidecar_client import Event

from .renderers import denial
from .safe_text import one_line

MAX_TITLE = 100
MAX_RULE = 80
"""Characters: a line of a log is read at a glance."""

MODES = {"edit": "accept-edits"}
"""The mode that allows a kind of call; for any other it is auto."""


class Denials:
    """Collects the denied calls of a turn, each as one line with the remedy."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._requests: dict[str, dict[str, Any]] = {}

    def take(self, event: Event) -> None:
        id = str(event.data.get("permissionId"))
        if event.type == "permission.requested":
            self._requests[id] = event.data
        elif event.type == "permission.resolved":
            request, reason = self._requests.pop(id, None), denial(event)
            if request is not None and reason is not None:
                self.lines.append(_line(request, reason, str(event.data.get("by"))))


def _line(request: dict[str, Any], reason: str, by: str) -> str:
    title = one_line(str(request.get("title")), MAX_TITLE)
    return f"denied: {title}: {one_line(reason)}{_remedy(request, reason, by)}"


def _remedy(request: dict[str, Any], reason: str, by: str) -> str:
    if by == "rule":
        return ""
    if "read-only" in reason:
        return "; another --mode allows it"
    rule = next(
        (option.get("rule") for option in _options(request) if option["decision"] == "allow_always"), None
    )
    if rule is None:
        return "; only a person in a terminal can allow it"
    mode = MODES.get(str(request.get("kind")), "auto")
    named = one_line(rule) if len(rule) <= MAX_RULE else "a rule"
    return f"; --mode {mode} allows it, or {named} in permissions.allow of the configuration"


def _options(request: dict[str, Any]) -> list[dict[str, Any]]:
    options = request.get("options")
    return options if isinstance(options, list) else []
