"""The tools of one turn: which there are, and the one way in which any of them is run.

The way: the tool plans, a person or a rule gives leave, the planned edits are written, the tool acts. Whatever goes
wrong is an answer for the model, never the end of the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from ..model.failures import Failure
from ..model.figures import Measured
from ..providers.base import ToolCall, ToolSpec
from .base import Edit, Hands, Outcome, Ready, Tool, Wrong

logger = logging.getLogger(__name__)

INLINE_CHARACTERS = 32 * 1024
"""What the model is given of one output; the rest is kept, and named by a reference."""

TAIL_CHARACTERS = 4 * 1024
"""Of that, the end: a command's last lines say how it went."""

_KINDS = {"read": 0, "search": 1, "edit": 2, "execute": 3}


class Before(msgspec.Struct, frozen=True):
    """A call before its tool plans: what it is to be called with, or the outcome that stands for it. `note` tells the
    model what was changed."""

    input: dict[str, Any]
    outcome: Outcome | None = None
    note: str = ""


class Clerk(Hands, Protocol):
    """A tool's hands, and what is asked for around the call itself."""

    async def before(self, call: ToolCall, tool: Tool, names: Collection[str]) -> Before:
        """What stands before the call: hooks, and a better way among the tools with these names."""

    async def after(self, outcome: Outcome) -> Outcome:
        """The outcome of a call that was carried out, with what hooks have to say to it."""

    async def carry_out(self, edits: Sequence[Edit]) -> None:
        """Write the edits: all or none, each only over the bytes that it was planned for."""

    async def keep(self, text: str, *, shown: bool, cut: bool, source: str | None) -> Kept:
        """Keep an output so that it is found again. A `shown` one is what the model asked to see; `cut` says that
        even so not all of it is sent; `source` is the index's name for it when the tool has kept it there."""


class Kept(msgspec.Struct, frozen=True):
    """Where an output is found again: `ref` has it whole, the index knows it as `source`. `preview` is sent in its
    place when it is kept out of the window, and `measured` what that saves."""

    ref: str | None = None
    source: str | None = None
    preview: str | None = None
    measured: Measured | None = None


class Result(msgspec.Struct, frozen=True):
    """An outcome as the model and the user are shown it, whole or a part; `ref` and `source` lead to the whole."""

    outcome: Outcome
    ref: str | None = None
    source: str | None = None
    truncated: bool = False


class Toolbox:
    def __init__(self, tools: Iterable[Tool], deny: Sequence[str] = ()) -> None:
        """`deny` names tools that are left out."""
        self._tools = {tool.spec.name: tool for tool in tools if tool.spec.name not in deny}

    @property
    def specs(self) -> list[ToolSpec]:
        """What the model is told, in an order that does not change."""
        return [self._tools[name].spec for name in sorted(self._tools)]

    def by_need(self, used: Container[str]) -> list[str]:
        """The tools' names, the most needed first: those that were `used`, then ours and the app's before a server's;
        of these what looks at files, what changes them, what runs commands."""

        def need(name: str) -> tuple[bool, bool, int]:
            kind = self._tools[name].kind
            return name not in used, name.startswith("mcp__"), _KINDS.get(kind, len(_KINDS))

        return sorted(self._tools, key=need)

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def run(self, call: ToolCall, clerk: Clerk) -> Result:
        """Carry out a call."""
        try:
            outcome = await self._outcome(call, clerk)
            return await _bounded(outcome, clerk)
        except Failure as failure:
            return Result(Outcome(_clean(failure.message), failed=True))
        except Exception:
            logger.exception("a tool failed", extra={"tool": call.name})
            return Result(Outcome("The tool failed inside the sidecar.", failed=True))

    async def _outcome(self, call: ToolCall, clerk: Clerk) -> Outcome:
        tool = self._tools.get(call.name)
        if call.problem or tool is None:
            return Outcome(call.problem or self._unknown(call.name), failed=True)
        before = await clerk.before(call, tool, self._tools)
        if before.outcome is not None:
            return before.outcome
        outcome = await _carried_out(tool, before.input, clerk)
        noted = f"{outcome.text}\n\n{before.note}"
        return msgspec.structs.replace(outcome, text=noted) if before.note else outcome

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name[:64], self._tools, n=1)
        return f"There is no tool called {name[:64]!r}." + (f" Did you mean {near[0]}?" if near else "")


async def _carried_out(tool: Tool, input: dict[str, Any], clerk: Clerk) -> Outcome:
    try:
        ready = await tool.prepare(input, clerk)
        verdict = await clerk.leave(ready.need)
        if not verdict.allowed:
            return Outcome(verdict.words, denied=True, not_run=verdict.denial)
        outcome = await clerk.after(await _act(ready, clerk))
        added = f"{outcome.text}\n\nThe user adds: {verdict.words}"
        return msgspec.structs.replace(outcome, text=added) if verdict.words else outcome
    except Wrong as wrong:
        return Outcome(str(wrong), failed=True)


async def _act(ready: Ready, clerk: Clerk) -> Outcome:
    if ready.need.edits:
        await clerk.carry_out(ready.need.edits)
    return await ready.run()


async def _bounded(outcome: Outcome, clerk: Clerk) -> Result:
    """The outcome with well-formed text of a bounded length; what is longer is kept whole, and found again."""
    text, whole = _clean(outcome.text), _clean(outcome.whole or "")
    short = _cut(text)
    cut = short != (whole or text)
    kept = await clerk.keep(whole or text, shown=outcome.shown, cut=cut, source=outcome.source)
    sent = short if kept.preview is None else _clean(kept.preview)
    paths, matched = tuple(map(_clean, outcome.paths)), tuple(map(_clean, outcome.matched))
    measured = outcome.measured or kept.measured
    made = msgspec.structs.replace(
        outcome, text=sent, whole=None, paths=paths, matched=matched, measured=measured
    )
    return Result(made, kept.ref, kept.source, truncated=cut or kept.preview is not None)


def _cut(text: str) -> str:
    if len(text) <= INLINE_CHARACTERS:
        return text
    head = INLINE_CHARACTERS - TAIL_CHARACTERS
    hidden = len(text) - INLINE_CHARACTERS
    return f"{text[:head]}\n… {hidden} characters left out …\n{text[-TAIL_CHARACTERS:]}"


def _clean(text: str) -> str:
    """Well-formed text: the name of a file may be bytes that are none."""
    return text.encode(errors="replace").decode()
