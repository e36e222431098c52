"""`update_plan`: the model shows its plan and progress to the user."""

from __future__ import annotations

from typing import get_args

from ...providers.base import ToolSpec
from ..base import (
    Intent,
    PlanEntry,
    PlannedCall,
    PlanStatus,
    ToolContext,
    ToolError,
    ToolInput,
    ToolKind,
    ToolOutcome,
)

STATUSES: tuple[PlanStatus, ...] = get_args(PlanStatus)
MAX_STEPS = 50
MAX_STEP = 500
"""Steps, and characters of one: a plan is read at a glance."""


class UpdatePlan:
    kind: ToolKind = "think"
    runs_alone = False
    spec = ToolSpec(
        "update_plan",
        "Show the user your plan for work of several steps, and again, whole, when a step begins or is done.",
        {
            "type": "object",
            "properties": {
                "plan": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": {"type": "string"},
                            "status": {"type": "string", "enum": list(STATUSES)},
                        },
                        "required": ["step", "status"],
                    },
                }
            },
            "required": ["plan"],
        },
    )

    def title(self, input: ToolInput) -> str:
        return "Update the plan"

    async def prepare(self, input: ToolInput, context: ToolContext) -> PlannedCall:
        entries = _entries(input.get("plan"))

        async def run() -> ToolOutcome:
            await context.plan(entries)
            done = sum(entry.status == "completed" for entry in entries)
            return ToolOutcome(f"The plan is shown: {done} of {len(entries)} steps are done.")

        return PlannedCall(Intent("read", "."), run)


def _entries(plan: object) -> list[PlanEntry]:
    if not isinstance(plan, list) or not plan or len(plan) > MAX_STEPS:
        raise ToolError(f"`plan` must be a list of 1 to {MAX_STEPS} steps.")
    return [_entry(step) for step in plan]


def _entry(item: object) -> PlanEntry:
    step, status = (item.get("step"), item.get("status")) if isinstance(item, dict) else (None, None)
    if not isinstance(step, str) or not step.strip() or len(step) > MAX_STEP:
        raise ToolError(f"Each step of `plan` needs a `step`: text of at most {MAX_STEP} characters.")
    if status not in STATUSES:
        raise ToolError(f"Each step of `plan` needs a `status`: {', '.join(STATUSES)}.")
    return PlanEntry(step, status)
