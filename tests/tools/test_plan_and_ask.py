"""`update_plan` shows a plan, and `ask_user` brings back what the person says, or that nobody does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.tools.ask_user import CANCELLED, DECLINED, MAX_CHOICES, NOBODY, AskUser
from sidecar.tools.base import Answer, Need, Outcome, Wrong
from sidecar.tools.update_plan import MAX_STEPS, UpdatePlan
from sidecar.workspace.paths import Workspace
from tests.tools.hands import OpenHands, carry_out


@pytest.fixture
def hands(tmp_path: Path) -> OpenHands:
    return OpenHands(Workspace(str(tmp_path)))


def step(text: object, status: object) -> dict[str, Any]:
    return {"step": text, "status": status}


async def test_a_plan_is_shown_in_the_words_of_the_contract(hands: OpenHands) -> None:
    plan = [step("look", "completed"), step("mend", "in_progress"), step("test", "pending")]
    outcome = await carry_out(UpdatePlan(), {"plan": plan}, hands)
    assert outcome == Outcome("The plan is shown: 1 of 3 steps are done.")
    assert hands.planned == [
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
async def test_a_plan_that_is_none_is_refused_and_not_shown(hands: OpenHands, plan: object) -> None:
    with pytest.raises(Wrong, match="plan"):
        await carry_out(UpdatePlan(), {"plan": plan}, hands)
    assert hands.planned == []


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
    hands: OpenHands, input: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    await carry_out(AskUser(), {"question": "Which?", **input}, hands)
    assert hands.asked == [("Which?", {"type": "object", "properties": properties, "required": required})]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer("accept", {"choice": "a"}), "The user answers: a"),
        (Answer("accept", {"text": "neither"}), "The user answers: neither"),
        (Answer("accept", {"choice": "a", "text": "but later"}), "The user answers: a\nbut later"),
        (Answer("accept"), "The user agreed without words."),
        (Answer("decline"), DECLINED),
        (Answer("cancel"), CANCELLED),
        (None, NOBODY),
    ],
)
async def test_every_answer_is_told(hands: OpenHands, answer: Answer | None, told: str) -> None:
    hands.answers = [answer] if answer else []
    assert await carry_out(AskUser(), {"question": "Which?"}, hands) == Outcome(told)


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
    hands: OpenHands, input: dict[str, Any]
) -> None:
    with pytest.raises(Wrong, match="must"):
        await carry_out(AskUser(), input, hands)
    assert hands.asked == []


async def test_a_question_waits_for_nothing_else_and_needs_no_more_than_reading(hands: OpenHands) -> None:
    assert AskUser.alone
    assert (await AskUser().prepare({"question": "?"}, hands)).need == Need("read", ".")
