"""Lists and changes permission rules: those of a chat, its project and the user."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.failures import Refused, invalid_param
from ...policy.rules import Rule, RuleScope, parse_rule_text
from ...store.store import Store
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats
from ..tool_calls.permissions import rule_of, rule_row


class RuleTarget(msgspec.Struct, frozen=True):
    """Where rules apply: in a chat, in a project, or for the user only."""

    store: Store
    chat: int | None
    project: str | None
    file_rules: Sequence[Rule]


async def rule_scope(chats: Chats, address: ChatAddress) -> RuleTarget:
    """The chat that is named, with its project; without a name, a project alone or only the user."""
    found = await chats.find(address)
    settings = chats.services.settings
    if found is None or found.deleted:
        project = chats.project(address)
        return RuleTarget(chats.store, None, project, settings(project).rules)
    return RuleTarget(chats.store, found.id, found.project_path, settings(found.project_path).rules)


async def list_rules(rule_scope: RuleTarget) -> list[tuple[Rule, int | None]]:
    """The rules that apply there, those of files first, each with its creation time."""
    rows = await rule_scope.store.permission_rules.of(rule_scope.chat, rule_scope.project)
    return [(rule, None) for rule in rule_scope.file_rules] + [(rule_of(row), row.created_at) for row in rows]


async def put_rule(rule_scope: RuleTarget, scope: RuleScope, effect: str, text: str) -> str:
    """Create a rule; returns its id."""
    if scope == "chat" and rule_scope.chat is None:
        raise invalid_param("scope", "chat needs the key of a chat that exists")
    if scope == "project" and rule_scope.project is None:
        raise invalid_param("scope", "project needs `projectPath`, or a chat that has one")
    row = rule_row(scope, effect, *parse_rule_text(text), "app")
    await rule_scope.store.permission_rules.put(row, rule_scope.chat, rule_scope.project)
    return row.id


async def remove_rule(rule_scope: RuleTarget, id: str) -> None:
    """Remove a rule; one that does not exist is no error."""
    if any(rule.id == id for rule in rule_scope.file_rules):
        raise Refused(
            "precondition_failed",
            "This rule is in a settings file: remove it there",
            params={"field": "id"},
        )
    await rule_scope.store.permission_rules.remove(id)
