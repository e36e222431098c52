"""How far a script has been played: which reply comes next, and where an interrupted one goes on.

One for each provider, shared by all chats that play the script. Knows nothing of streaming.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain

from .base import AssistantMessage, Message, ModelRequest, ToolResult, UserMessage
from .script_format import Script, Step, flat

MAX_STOPPED = 1000
"""Places kept for going on. Cancelled turns never come back for theirs, so the oldest are let go."""


@dataclass(frozen=True)
class Place:
    """A reply and what is left of it; `failed` when it stopped at an error and not at a tool call."""

    reply: int
    steps: Iterator[Step]
    failed: bool = False


class Progress:
    def __init__(self, script: Script) -> None:
        self.script = script
        self._uses = [0] * len(script.replies)
        self._stopped: dict[str, Place] = {}

    def take(self, request: ModelRequest) -> Place | None:
        """The rest of the reply that stopped for this request, or a new reply; None when there is none."""
        stopped = self._forget(_keys(request))
        if stopped is None:
            return self._choose(prompt_of(request), -1)
        first = next(stopped.steps, None)
        if first is None and stopped.failed:
            return self._choose(prompt_of(request), stopped.reply)
        return Place(stopped.reply, chain([first] if first else [], stopped.steps))

    def stop_at_calls(self, place: Place, ids: list[str]) -> None:
        """The request that brings these calls' results goes on here."""
        self._remember([_call_key(id) for id in ids], place)

    def stop_at_error(self, place: Place, request: ModelRequest) -> None:
        """The same request once more goes on here, or with the next reply when nothing is left."""
        self._remember(_keys(request), Place(place.reply, place.steps, failed=True))

    def _choose(self, prompt: str, after: int) -> Place | None:
        index = self._next(prompt, after)
        if index is None and self.script.on_exhausted == "repeat":
            self._uses = [0] * len(self._uses)
            index = self._next(prompt, after)
        if index is None:
            return None
        self._uses[index] += 1
        return Place(index, flat(self.script.replies[index].steps))

    def _next(self, prompt: str, after: int) -> int | None:
        """The first reply that matches, behind `after` if one does; else the next of those in order."""
        left = [(i, r) for i, r in enumerate(self.script.replies) if not r.used_up(self._uses[i])]
        chosen = [i for i, reply in left if reply.answers(prompt)]
        behind = [i for i in chosen if i > after]
        in_order = [i for i, reply in left if reply.in_order]
        return next(iter(behind or chosen or in_order), None)

    def _forget(self, keys: list[str]) -> Place | None:
        found = [self._stopped.pop(key) for key in keys if key in self._stopped]
        return found[0] if found else None

    def _remember(self, keys: list[str], place: Place) -> None:
        for key in keys:
            self._stopped[key] = place
        while len(self._stopped) > MAX_STOPPED:
            del self._stopped[next(iter(self._stopped))]


def prompt_of(request: ModelRequest) -> str:
    """The text of the last thing that the user said."""
    return next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage)), "")


def _keys(request: ModelRequest) -> list[str]:
    """What a request that goes on with a reply is known by: the tool calls that it answers, or its prompt."""
    ids = [message.call_id for message in _news(request.messages) if isinstance(message, ToolResult)]
    # A prompt may be megabytes long, and a key is kept until the request comes again.
    prompt = sha256(prompt_of(request).encode(errors="surrogatepass")).hexdigest()
    return [_call_key(id) for id in ids] or [f"prompt {prompt}"]


def _call_key(id: str) -> str:
    return f"call {id}"


def _news(messages: list[Message]) -> list[Message]:
    """What came after the model last spoke."""
    spoken = [i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return messages[spoken[-1] + 1 :] if spoken else messages
