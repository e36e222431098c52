"""How agents write a hook in their settings, what they send to it, and how it answers.

Most have taken over Claude Code's format, with small differences, which the agents' modules override. Pure, and light:
an agent waits for a hook.
"""

from __future__ import annotations

from ..system.lazy import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from collections.abc import Mapping
    from typing import Any, Literal

    Kind = Literal["before_tool", "after_tool", "prompt", "answer", "session_start", "before_compaction"]
else:
    json = lazy_module("json")

LIMIT_S = 10
"""Seconds after which an agent goes on without our hook; it takes some fifty milliseconds."""

CLAUDE_EVENTS: Mapping[str, Kind] = {
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "UserPromptSubmit": "prompt",
    "SessionStart": "session_start",
    "PreCompact": "before_compaction",
    "Stop": "answer",
}

_OUTPUT_PARTS = (
    "stdout",
    "stderr",
    "textResultForLlm",
    "text_result_for_llm",
    "llmContent",
    "content",
    "output",
)
"""Where agents put the text of a tool's result."""


class HookEvent:
    """What an agent reports at one point of its session."""

    __slots__ = ("id", "input", "kind", "project", "session", "source", "text", "tool")

    def __init__(
        self,
        kind: Kind,
        *,
        session: str,
        project: str,
        text: str = "",
        tool: str = "",
        input: dict[str, Any] | None = None,
        source: str = "",
        id: str = "",
    ) -> None:
        self.kind: Kind = kind
        self.session = session
        self.project = project
        self.text = text
        self.tool = tool
        self.input = input or {}
        self.source = source
        self.id = id


class Reply:
    """What a hook answers: `data` as JSON or `text` on stdout, or an exit code with its reason on stderr."""

    __slots__ = ("code", "data", "reason", "text")

    def __init__(
        self, data: dict[str, Any] | None = None, *, text: str = "", code: int = 0, reason: str = ""
    ) -> None:
        self.data = data
        self.text = text
        self.code = code
        self.reason = reason


class HookFormat:
    """Claude Code's format. `events` are the agent's events for which our hook is registered, and what each is."""

    events: Mapping[str, Kind] = CLAUDE_EVENTS

    context_events: tuple[str, ...] = ("SessionStart", "UserPromptSubmit")
    """Events at which the agent takes text for its model."""

    def is_noise(self, event: str, payload: bytes) -> bool:
        """Whether the event means nothing, which must be found before the payload is parsed."""
        return False

    def entry(self, event: str, command: str) -> dict[str, Any]:
        """The hook as an item of the agent's settings."""
        group = {"hooks": [{"type": "command", "command": command, "timeout": LIMIT_S}]}
        # For other events a matcher would have to name what starts a session, and the like.
        return {"matcher": "*", **group} if "Tool" in event else group

    def read(self, event: str, payload: dict[str, Any]) -> HookEvent:
        kind = self.events[event]
        return HookEvent(
            kind,
            session=first_text(payload, "session_id", "sessionId"),
            project=first_text(payload, "cwd"),
            text=self._text(kind, payload),
            tool=first_text(payload, "tool_name", "toolName"),
            input=tool_input(payload.get("tool_input", payload.get("toolArgs"))),
            source=first_text(payload, "source", "trigger"),
            id=first_text(payload, "tool_use_id", "tool_call_id", "prompt_id", "turn_id"),
        )

    def transcript(self, event: str, payload: dict[str, Any]) -> str:
        """The file with the conversation, where an answer is only there; "" where the payload has all."""
        return ""

    def answer_in(self, transcript: str) -> str:
        """The last answer in the end of a transcript."""
        return ""

    def deny(self, event: str, reason: str) -> Reply:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return Reply({"hookSpecificOutput": {"hookEventName": event, **decision}})

    def add_context(self, event: str, text: str) -> Reply | None:
        """Give the model this text; None where the agent takes none at this event."""
        if event not in self.context_events:
            return None
        return Reply({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})

    def _text(self, kind: Kind, payload: dict[str, Any]) -> str:
        """The text of the event: a prompt, an answer, or the output of a tool."""
        if kind == "prompt":
            return first_text(payload, "prompt")
        if kind == "answer":
            return first_text(payload, "last_assistant_message")
        if kind == "after_tool":
            names = ("tool_response", "toolResult", "tool_result", "tool_output")
            return output_text(next((payload[name] for name in names if name in payload), None))
        return ""


class ExitCodeFormat(HookFormat):
    """Agents that read an exit code: 2 denies with the reason on stderr, and stdout is text for the model."""

    def deny(self, event: str, reason: str) -> Reply:
        return Reply(code=2, reason=reason)

    def add_context(self, event: str, text: str) -> Reply | None:
        return Reply(text=text) if event in self.context_events else None


class ScriptFormat(HookFormat):
    """The format of our own scripts, for agents whose hooks are programs that they load."""

    events: Mapping[str, Kind] = {
        "session_start": "session_start",
        "prompt": "prompt",
        "before_tool": "before_tool",
        "after_tool": "after_tool",
        "before_compaction": "before_compaction",
        "answer": "answer",
    }
    context_events = ("session_start", "prompt", "before_compaction")

    def deny(self, event: str, reason: str) -> Reply:
        return Reply({"deny": reason})

    def add_context(self, event: str, text: str) -> Reply | None:
        return Reply({"context": text}) if event in self.context_events else None

    def _text(self, kind: Kind, payload: dict[str, Any]) -> str:
        return output_text(payload.get("text"))


def first_text(payload: dict[str, Any], *names: str) -> str:
    """The first of these members that is a text with something in it; "" when none is."""
    return next((payload[name] for name in names if payload.get(name) and isinstance(payload[name], str)), "")


def tool_input(given: object) -> dict[str, Any]:
    """The arguments of a tool call, which some agents send as the text of their JSON."""
    if isinstance(given, str):
        given = parse_json(given) or {"text": given}
    return given if isinstance(given, dict) else {}


def output_text(found: object) -> str:
    """The text of a tool's result, in the forms that agents send."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        blocks = (one for one in found if not isinstance(one, dict) or "text" in one or "type" not in one)
        return "\n".join(filter(None, map(output_text, blocks)))
    if not isinstance(found, dict):
        return ""
    if isinstance(found.get("text"), str):
        return str(found["text"])
    texts = [text for name in _OUTPUT_PARTS if (text := output_text(found.get(name)))]
    return "\n".join(texts) or (json.dumps(found, ensure_ascii=False) if found else "")


def parse_json(text: str) -> Any:
    """The value of JSON text; None when it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None
