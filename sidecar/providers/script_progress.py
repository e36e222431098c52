"""The progress of a script: which reply comes next, and where an interrupted one continues.

One per provider, shared by all chats that use the script. Knows nothing of streaming.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain

from .base import AssistantMessage, Message, ModelRequest, ToolResult, UserMessage
from .script_format import Script, ScriptedStep, flat_steps

MAX_STOPPED = 1000
"""Stored positions. Cancelled turns never return for theirs, so the oldest are dropped."""


@dataclass(frozen=True)
class ScriptPosition:
    """A reply and the rest of it; `failed` when it stopped at an error and not at a tool call."""

    reply: int
    steps: Iterator[ScriptedStep]
    failed: bool = False


class ScriptProgress:
    def __init__(self, script: Script) -> None:
        self.script = script
        self._uses = [0] * len(script.replies)
        self._stopped: dict[str, ScriptPosition] = {}

    def take(self, request: ModelRequest) -> ScriptPosition | None:
        """Return the rest of the reply that stopped for this request, or a new reply; None when there is none."""
        stopped = self._forget(_keys(request))
        if stopped is None:
            return self._choose(prompt_of(request), -1)
        first = next(stopped.steps, None)
        if first is None and stopped.failed:
            return self._choose(prompt_of(request), stopped.reply)
        return ScriptPosition(stopped.reply, chain([first] if first else [], stopped.steps))

    def stop_at_calls(self, place: ScriptPosition, ids: list[str]) -> None:
        """Continue here at the request that brings the results of these calls."""
        self._remember([_call_key(id) for id in ids], place)

    def stop_at_error(self, place: ScriptPosition, request: ModelRequest) -> bool:
        """Continue here when the same request is sent again, or with the next reply when nothing is left; return
        whether the script has something else than the same error for it."""
        first = next(place.steps, None)
        steps = chain([first] if first else [], place.steps)
        self._remember(_keys(request), ScriptPosition(place.reply, steps, failed=True))
        return first is not None or self._next(prompt_of(request), place.reply) not in (None, place.reply)

    def _choose(self, prompt: str, after: int) -> ScriptPosition | None:
        index = self._next(prompt, after)
        if index is None and self.script.on_exhausted == "repeat":
            self._uses = [0] * len(self._uses)
            index = self._next(prompt, after)
        if index is None:
            return None
        self._uses[index] += 1
        return ScriptPosition(index, flat_steps(self.script.replies[index].steps))

    def _next(self, prompt: str, after: int) -> int | None:
        """Return the first reply that matches, after `after` if one does; else the next of those in order."""
        left = [(i, r) for i, r in enumerate(self.script.replies) if not r.used_up(self._uses[i])]
        chosen = [i for i, reply in left if reply.answers(prompt)]
        behind = [i for i in chosen if i > after]
        in_order = [i for i, reply in left if reply.in_order]
        return next(iter(behind or chosen or in_order), None)

    def _forget(self, keys: list[str]) -> ScriptPosition | None:
        found = [self._stopped.pop(key) for key in keys if key in self._stopped]
        return found[0] if found else None

    def _remember(self, keys: list[str], place: ScriptPosition) -> None:
        for key in keys:
            self._stopped[key] = place
        while len(self._stopped) > MAX_STOPPED:
            del self._stopped[next(iter(self._stopped))]


def prompt_of(request: ModelRequest) -> str:
    """Return the text of the last user message."""
    return next((m.text for m in reversed(request.messages) if isinstance(m, UserMessage)), "")


def _keys(request: ModelRequest) -> list[str]:
    """Return the keys of a request that continues a reply: the tool calls that it answers, or its prompt."""
    ids = [message.call_id for message in _new_messages(request.messages) if isinstance(message, ToolResult)]
    # A prompt may be megabytes long, and a key is stored until the request comes again.
    prompt = sha256(prompt_of(request).encode(errors="surrogatepass")).hexdigest()
    return [_call_key(id) for id in ids] or [f"prompt {prompt}"]


def _call_key(id: str) -> str:
    return f"call {id}"


def _new_messages(messages: list[Message]) -> list[Message]:
    """Return the messages after the model's last one."""
    spoken = [i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return messages[spoken[-1] + 1 :] if spoken else messages
