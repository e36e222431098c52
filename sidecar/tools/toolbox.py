"""The tools of one chat: which there are, and the one way in which any of them is run."""

from __future__ import annotations

import logging
from functools import partial

import anyio.to_thread

from ..model.failures import Failure
from ..providers.base import ToolCall, ToolSpec
from ..workspace.paths import Workspace
from .base import Outcome, Tool, Wrong
from .list_dir import ListDir
from .read_file import ReadFile

logger = logging.getLogger(__name__)


class Toolbox:
    """Without a workspace there are no tools: a chat without a project has no files."""

    def __init__(self, workspace: Workspace | None, allow: list[str] | None, deny: list[str]) -> None:
        self._workspace = workspace
        tools: list[Tool] = [ListDir(), ReadFile()] if workspace else []
        wanted = [tool for tool in tools if allow is None or tool.spec.name in allow]
        self._tools = {tool.spec.name: tool for tool in wanted if tool.spec.name not in deny}

    @property
    def specs(self) -> list[ToolSpec]:
        """What the model is told, in an order that does not change."""
        return [self._tools[name].spec for name in sorted(self._tools)]

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def run(self, call: ToolCall) -> Outcome:
        """Carry out a call. Whatever goes wrong is an answer for the model, never the end of the turn."""
        tool = self._tools.get(call.name)
        if call.problem or tool is None or self._workspace is None:
            return Outcome(call.problem or f"There is no tool called {call.name!r}.", failed=True)
        try:
            run = partial(tool.run, call.input, self._workspace)
            outcome = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
            return Outcome(_clean(outcome.text), outcome.failed, tuple(map(_clean, outcome.paths)))
        except Wrong as wrong:
            return Outcome(_clean(str(wrong)), failed=True)
        except Failure as failure:
            return Outcome(_clean(failure.message), failed=True)
        except Exception:
            logger.exception("a tool failed", extra={"tool": call.name})
            return Outcome("The tool failed inside the sidecar.", failed=True)


def _clean(text: str) -> str:
    """Well-formed text: the name of a file may be bytes that are none."""
    return text.encode(errors="replace").decode()
