"""Tool results as the model gets them: fenced, like all text that neither the user nor this program has written.

Used for new results and for those of the history, so that both are the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..context.fences import fence_text
from ..model.content import Block
from ..providers.base import ToolResult

LABEL = "tool output"

USER_TEXT_TOOLS = frozenset({"ask_user"})
"""Tools whose results are the user's own words."""


def tool_result(
    secret: str,
    call_id: str,
    name: str,
    text: str,
    *,
    failed: bool = False,
    denied: bool = False,
    source: str | None = None,
    content: Sequence[Block] = (),
) -> ToolResult:
    """The result of a call. The text of a denial is ours or the user's, so it is not fenced."""
    if denied or name in USER_TEXT_TOOLS:
        return ToolResult(call_id, text, failed or denied, source)
    fenced = fence_output(secret, text)
    return ToolResult(call_id, fenced, failed, source, said=text, content=list(content))


def fence_output(secret: str, text: str) -> str:
    return fence_text(secret, LABEL, LABEL, text)
