"""What the journal gets about a request to the user: the members of each outcome, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from sidecar.chat.journal.running_turn import unanswered_outcome
from sidecar.model.content import PermissionOutcome, ResolvedBy
from sidecar.policy.rules import Rule
from tests.unit.chat.memory import SETTINGS, ScriptedApp, events, open_session
from tests.unit.chat.test_tool_call import WRITE, calling, run_call

DENYING = Rule("r-1", "user", "deny", "edit", "*.txt")
ALLOWING = Rule("r-2", "user", "allow", "edit", "*.txt")
USER: dict[str, Any] = {"by": "user"}


async def resolved(
    folder: Path, decision: str | None = None, rule: Rule | None = None, mode: str = "ask"
) -> dict[str, Any]:
    """The data of the one `permission.resolved` of a write, without the ids of this run."""
    settings = msgspec.structs.replace(SETTINGS, rules=[rule] if rule else [])
    options = {"app": ScriptedApp(decision), "settings": settings, "mode": mode}
    async with open_session(calling("write_file", **WRITE), project=folder, **options) as session:
        item = await run_call(session)
        ((_, data),) = await events(session, "permission.resolved")
    assert data.pop("permissionId").startswith("pe-")
    assert data.pop("itemId") == item.id
    return data


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("allow_once", {"decision": "allow_once", **USER}),
        ("deny_once", {"decision": "deny_once", "code": "user_denied", **USER}),
    ],
)
async def test_an_answer_that_counts_once_names_no_rule(
    tmp_path: Path, decision: str, expected: dict[str, Any]
) -> None:
    assert await resolved(tmp_path, decision) == expected


@pytest.mark.parametrize("decision", ["allow_chat", "allow_always", "deny_always"])
async def test_an_answer_that_lasts_names_the_rule_that_it_added(tmp_path: Path, decision: str) -> None:
    data = await resolved(tmp_path, decision)

    assert data.pop("ruleId").startswith("r-")
    assert data == {"decision": decision, **USER, **({"code": "user_denied"} if "deny" in decision else {})}


async def test_a_denial_by_a_rule_names_the_rule_and_the_reason(tmp_path: Path) -> None:
    data = await resolved(tmp_path, "allow_once", DENYING)

    assert isinstance(data.pop("reason"), str)
    assert data == {"decision": "deny_once", "by": "rule", "code": "rule_denied", "ruleId": "r-1"}


async def test_what_a_rule_allows_is_recorded_with_its_subject(tmp_path: Path) -> None:
    data = await resolved(tmp_path, "deny_once", ALLOWING)

    assert isinstance(data.pop("reason"), str)
    assert data == {
        "decision": "allow_once", "by": "rule", "kind": "edit", "subject": "note.txt", "ruleId": "r-2"
    }  # fmt: skip


@pytest.mark.parametrize(("mode", "code"), [("ask", "cannot_ask"), ("read-only", "read_only")])
async def test_a_denial_without_a_question_or_a_rule_is_by_the_policy(
    tmp_path: Path, mode: str, code: str
) -> None:
    data = await resolved(tmp_path, mode=mode)

    assert isinstance(data.pop("reason"), str)
    assert data == {"decision": "deny_once", "by": "policy", "code": code}


@pytest.mark.parametrize("by", ["cancel", "restart"])
def test_a_request_that_nobody_answered_is_denied_or_cancelled(by: str) -> None:
    who = cast("ResolvedBy", by)
    assert [
        msgspec.to_builtins(unanswered_outcome(kind, "x-1", who)) for kind in ("permission", "input")
    ] == [
        {"permissionId": "x-1", "decision": "deny_once", "by": by},
        {"inputId": "x-1", "action": "cancel", "by": by},
    ]


def test_an_outcome_of_an_older_journal_is_read() -> None:
    old = {"permissionId": "pe-1", "decision": "allow_chat", "by": "user", "ruleId": "r-3", "other": 1}

    assert msgspec.convert(old, PermissionOutcome) == PermissionOutcome(
        permission_id="pe-1", decision="allow_chat", by="user", rule_id="r-3"
    )
