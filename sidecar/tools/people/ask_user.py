"""`ask_user`: the model asks the user something, with choices, free text, or both."""

from __future__ import annotations

from ...model import JsonObject
from ...providers.base import ToolSpec
from ..base import Intent, PlannedCall, ToolContext, ToolError, ToolInput, ToolKind, ToolOutcome, UserAnswer

MAX_QUESTION = 4000
MAX_CHOICES = 12
MAX_CHOICE = 200
"""Characters and choices: what fits in a dialog."""

ANSWERS = "The user answers: "
NOBODY_TO_ASK = "Nobody can be asked here. Go on by your own best judgement, and say what you assumed."
DECLINED = "The user does not want to answer. Go on without it, or say what you need."
CANCELLED = "The user closed the question without an answer. Go on without it, or say what you need."


class AskUser:
    kind: ToolKind = "other"
    runs_alone = True
    spec = ToolSpec(
        "ask_user",
        "Ask the user when only they can decide. Give choices where you can; free_text lets them write instead.",
        {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "choices": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_CHOICES},
                "free_text": {"type": "boolean", "description": "Always so when there are no choices."},
            },
            "required": ["question"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return "Ask the user"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        question = input.text("question")
        if len(question) > MAX_QUESTION:
            raise ToolError(f"`question` must have at most {MAX_QUESTION} characters.")
        schema = _form(_choices(input.get("choices")), input.flag("free_text"))

        async def run() -> ToolOutcome:
            return ToolOutcome(_answer_text(await context.ask(question, schema)))

        return PlannedCall(Intent("read", "."), run)


def _choices(value: object) -> list[str]:
    if value is None:
        return []
    listed = value if isinstance(value, list) and len(value) <= MAX_CHOICES else [None]
    if not all(isinstance(each, str) and 0 < len(each) <= MAX_CHOICE for each in listed):
        raise ToolError(
            f"`choices` must be a list of at most {MAX_CHOICES} texts of at most {MAX_CHOICE} characters."
        )
    return list(dict.fromkeys(listed))


def _form(choices: list[str], free_text: bool) -> JsonObject:
    """Return a flat form, as in MCP elicitation. When both fields are offered, neither is required."""
    properties: JsonObject = {}
    if choices:
        properties["choice"] = {"type": "string", "enum": choices}
    if free_text or not choices:
        properties["text"] = {"type": "string"}
    required = list(properties) if len(properties) == 1 else []
    return {"type": "object", "properties": properties, "required": required}


def _answer_text(answer: UserAnswer | None) -> str:
    if answer is None:
        return NOBODY_TO_ASK
    if answer.action != "accept":
        return DECLINED if answer.action == "decline" else CANCELLED
    said = [str(answer.values[name]) for name in ("choice", "text") if answer.values.get(name)]
    return ANSWERS + "\n".join(said) if said else "The user agreed without words."
