"""`update_plan` shows a plan, and `ask_user` brings back what the person says, or that nobody does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.tools.base import Intent, ToolError, ToolInput, ToolOutcome, UserAnswer
from sidecar.tools.people.ask_user import CANCELLED, DECLINED, MAX_CHOICES, NOBODY_TO_ASK, AskUser
from sidecar.tools.people.update_plan import MAX_STEPS, UpdatePlan
from sidecar.workspace.paths import Workspace
from tests.unit.tools.context import FolderContext, carry_out


@pytest.fixture
def context(tmp_path: Path) -> FolderContext:
    return FolderContext(Workspace(str(tmp_path)))


def step(text: object, status: object) -> dict[str, Any]:
    return {"step": text, "status": status}


async def test_a_plan_is_shown_in_the_words_of_the_contract(context: FolderContext) -> None:
    plan = [step("look", "completed"), step("mend", "in_progress"), step("test", "pending")]
    outcome = await carry_out(UpdatePlan(), {"plan": plan}, context)
    assert outcome == ToolOutcome("The plan is shown: 1 of 3 steps are done.")
    assert context.planned == [
        [
            {"content": "look", "status": "completed"},
            {"content": "mend", "status": "in_progress"},
            {"content": "test", "status": "pending"},
        ]
    ]


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        "look",
        ["look"],
        [step("", "pending")],
        [step("look", "done")],
        [step(3, "pending")],
        [step("x" * 501, "pending")],
        [step("look", "pending")] * (MAX_STEPS + 1),
    ],
)
async def test_a_plan_that_is_none_is_refused_and_not_shown(context: FolderContext, plan: object) -> None:
    with pytest.raises(ToolError, match="plan"):
        await carry_out(UpdatePlan(), {"plan": plan}, context)
    assert context.planned == []


@pytest.mark.parametrize(
    ("input", "properties", "required"),
    [
        ({}, {"text": {"type": "string"}}, ["text"]),
        ({"choices": ["a", "b", "a"]}, {"choice": {"type": "string", "enum": ["a", "b"]}}, ["choice"]),
        (
            {"choices": ["a", "b"], "free_text": True},
            {"choice": {"type": "string", "enum": ["a", "b"]}, "text": {"type": "string"}},
            [],
        ),
    ],
)
async def test_a_question_is_a_flat_form(
    context: FolderContext, input: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    await carry_out(AskUser(), {"question": "Which?", **input}, context)
    assert context.asked == [("Which?", {"type": "object", "properties": properties, "required": required})]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (UserAnswer("accept", {"choice": "a"}), "The user answers: a"),
        (UserAnswer("accept", {"text": "neither"}), "The user answers: neither"),
        (UserAnswer("accept", {"choice": "a", "text": "but later"}), "The user answers: a\nbut later"),
        (UserAnswer("accept"), "The user agreed without words."),
        (UserAnswer("decline"), DECLINED),
        (UserAnswer("cancel"), CANCELLED),
        (None, NOBODY_TO_ASK),
    ],
)
async def test_every_answer_is_told(context: FolderContext, answer: UserAnswer | None, told: str) -> None:
    context.answers = [answer] if answer else []
    assert await carry_out(AskUser(), {"question": "Which?"}, context) == ToolOutcome(told)


@pytest.mark.parametrize(
    "input",
    [
        {},
        {"question": ""},
        {"question": "x" * 5000},
        {"question": "?", "choices": "a"},
        {"question": "?", "choices": [1]},
        {"question": "?", "choices": [""]},
        {"question": "?", "choices": ["a"] * (MAX_CHOICES + 1)},
        {"question": "?", "free_text": "yes"},
    ],
)
async def test_a_question_that_is_none_is_refused_and_not_asked(
    context: FolderContext, input: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match="must"):
        await carry_out(AskUser(), input, context)
    assert context.asked == []


async def test_a_question_waits_for_nothing_else_and_needs_no_more_than_reading(
    context: FolderContext,
) -> None:
    assert AskUser.runs_alone
    assert (await AskUser().prepare(ToolInput({"question": "?"}), context)).intent == Intent("read", ".")
