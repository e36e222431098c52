"""The handlers of permission rules, over chats in memory."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.model.failures import Refused

from .native import handlers, replies

RULE: dict[str, Any] = {"scope": "chat", "effect": "allow"}


async def test_a_rule_is_set_listed_by_scope_and_removed() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        put = await native.ask("permissionRules/set", chatId="c", rule="run(make test)", **RULE)
        listed = await native.ask("permissionRules/list", chatId="c", scope="chat")
        elsewhere = await native.ask("permissionRules/list", chatId="c", scope="user")
        await native.ask("permissionRules/remove", chatId="c", id=put.rule_id)
        left = await native.ask("permissionRules/list", chatId="c", scope="chat")

    assert [(one.id, one.effect, one.rule) for one in listed.items] == [
        (put.rule_id, "allow", "run(make test)")
    ]
    assert (elsewhere.items, left.items) == ([], [])


@pytest.mark.parametrize("more", [{}, {"rule": "read", "kind": "read"}])
async def test_a_rule_is_given_as_one_text_or_by_its_parts(more: dict[str, str]) -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        with pytest.raises(Refused) as refused:
            await native.ask("permissionRules/set", chatId="c", **RULE, **more)

    assert (refused.value.params or {})["field"] == "rule"
