"""Standing permission rules as people see and change them: a chat's own, its project's, the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..model.failures import Refused, invalid
from ..policy.rules import Rule, from_text
from ..store.store import Store
from .chats import Chats
from .identity import Address
from .permits import rule_of, rule_row

Scope = Literal["chat", "project", "user"]


class Place(msgspec.Struct, frozen=True):
    """Where rules are looked at from: a chat, a project, or neither."""

    store: Store
    chat: int | None
    project: str | None
    file_rules: Sequence[Rule]


async def place(chats: Chats, address: Address) -> Place:
    """The chat that is named, with its project; without a name, a project alone or nothing but the user."""
    found = await chats.find(address)
    settings = chats.workshop.settings
    if found is None or found.deleted:
        project = chats.project(address)
        return Place(chats.store, None, project, settings(project).rules)
    return Place(chats.store, found.id, found.project_path, settings(found.project_path).rules)


async def listed(place: Place) -> list[tuple[Rule, int | None]]:
    """The rules that hold there, those of files first, each with the time when it was made."""
    rows = await place.store.rules(place.chat, place.project)
    return [(rule, None) for rule in place.file_rules] + [(rule_of(row), row.created_at) for row in rows]


async def put(place: Place, scope: Scope, effect: str, text: str) -> str:
    """Make a rule; returns its id."""
    if scope == "chat" and place.chat is None:
        raise invalid("scope", "chat needs the key of a chat that exists")
    if scope == "project" and place.project is None:
        raise invalid("scope", "project needs `projectPath`, or a chat that has one")
    row = rule_row(scope, effect, *from_text(text), "app")
    await place.store.put_rule(row, place.chat, place.project)
    return row.id


async def remove(place: Place, id: str) -> None:
    """Revoke a rule; one that is gone already is no error."""
    if any(rule.id == id for rule in place.file_rules):
        raise Refused(
            "precondition_failed",
            "This rule stands in a settings file: remove it there",
            params={"field": "id"},
        )
    await place.store.remove_rule(id)
