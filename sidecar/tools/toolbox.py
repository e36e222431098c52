"""The tools of one turn, and the result of a call as the model and the user get it."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence

import msgspec

from ..model.content import Block
from ..model.figures import CallSavings
from ..providers.base import ToolCall, ToolSpec
from ..text.suggest import did_you_mean
from .base import Tool, ToolInput, ToolKind, ToolOutcome

_KIND_ORDER = {"read": 0, "search": 1, "edit": 2, "execute": 3}


class StoredOutput(msgspec.Struct, frozen=True):
    """Where an output is stored: `ref` names the full text, `source` its entry in the index. `preview` replaces it in
    the context window; `measured` is what that saves.
    """

    ref: str | None = None
    source: str | None = None
    preview: str | None = None
    measured: CallSavings | None = None


class CallResult(msgspec.Struct, frozen=True):
    """An outcome as the model and the user see it, in full or in part; `ref` and `source` lead to the full text, and
    `content` holds the stored images and audio.
    """

    outcome: ToolOutcome
    ref: str | None = None
    source: str | None = None
    truncated: bool = False
    content: tuple[Block, ...] = ()


class Toolbox:
    """The tools that one turn offers to the model."""

    def __init__(self, tools: Iterable[Tool], deny: Sequence[str] = ()) -> None:
        """`deny` names tools that are not offered."""
        self._tools = {tool.spec.name: tool for tool in tools if tool.spec.name not in deny}

    @property
    def specs(self) -> list[ToolSpec]:
        """Return the tool descriptions for the model, in a stable order."""
        return [self._tools[name].spec for name in sorted(self._tools)]

    def names_by_need(self, used: Container[str]) -> list[str]:
        """Return the names of the tools by importance: those that were `used`, then built-in tools and those of the
        app before those of a server; among these, tools that read files, change them, run commands.
        """

        def priority(name: str) -> tuple[bool, bool, int]:
            kind = self._tools[name].kind
            return name not in used, name.startswith("mcp__"), _KIND_ORDER.get(kind, len(_KIND_ORDER))

        return sorted(self._tools, key=priority)

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def title_and_kind(self, call: ToolCall) -> tuple[str, ToolKind]:
        """Return what the user reads while a call runs; for an unknown tool its name."""
        tool = self._tools.get(call.name)
        return (tool.title(ToolInput(call.input)), tool.kind) if tool else (call.name, "other")

    @property
    def names(self) -> Collection[str]:
        return self._tools.keys()

    def explain_unknown(self, name: str) -> str:
        """For the model: there is no such tool, and which one it may have meant."""
        near = did_you_mean(name[:64], self._tools)
        return f"There is no tool called {name[:64]!r}." + (f" Did you mean {near[0]}?" if near else "")
