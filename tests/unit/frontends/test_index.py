"""The handlers of the index, of tools, commands and hooks: what is stored is found, and what there is is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sidecar_protocol import messages as m

from sidecar.chat.actions.commands import COMMANDS
from sidecar.model.failures import Failure, Refused
from sidecar.settings.values import settings_of
from tests.unit.chat.memory import SETTINGS

from .native import handlers, replies

INDEXED = msgspec.structs.replace(
    SETTINGS, values=settings_of({"sandbox": "off", "fetch.enabled": False, "rules.enabled": False})
)
TEXT = "one\nthe spindle is blocked\nthree\n"
TOOL: dict[str, Any] = {
    "name": "lookup",
    "description": "Look something up.",
    "inputSchema": {"type": "object"},
    "kind": "search",
}


async def test_a_text_is_added_found_read_and_removed() -> None:
    async with handlers(replies("Hi"), settings=INDEXED) as native:
        await native.run("Hello")
        added = await native.ask("index/add", chatId="c", content=TEXT, source="log")
        found = await native.ask("index/search", chatId="c", queries=["spindle"])
        read = await native.ask("index/get", chatId="c", id=added.source_id, lines={"start": 2, "end": 2})
        listed = await native.ask("index/list", chatId="c")
        removed = await native.ask("index/remove", chatId="c", id=added.source_id)
        left = await native.ask("index/list", chatId="c")

    (hit,) = found.results[0].hits
    assert (hit.source_id, hit.source, "spindle" in hit.text) == (added.source_id, "log", True)
    assert (read.text, read.lines) == ("the spindle is blocked", m.SourceLines(start=2, end=2))
    assert [one.source for one in listed.items] == ["log"]
    assert (removed.removed, left.items) == (1, [])


async def test_a_source_that_is_not_there_is_refused() -> None:
    async with handlers(replies("Hi"), settings=INDEXED) as native:
        await native.run("Hello")
        with pytest.raises(Refused) as refused:
            await native.ask("index/get", chatId="c", id="out:aaaaaaaa")

    assert refused.value.name == "not_found"


async def test_the_built_in_tools_of_a_project_are_listed(tmp_path: Path) -> None:
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c", projectPath=str(tmp_path))
        listed = await native.ask("tools/list", chatId="c")

    assert {"read_file", "edit_file", "run_command"} <= {tool.name for tool in listed.items}
    assert listed.servers == []


async def test_tools_of_the_app_are_counted_and_their_names_checked() -> None:
    async with handlers(replies()) as native:
        offered = await native.ask("tools/offer", tools=[TOOL])
        with pytest.raises(Failure) as refused:
            await native.ask("tools/offer", tools=[TOOL, TOOL])

    assert offered.count == 1
    assert (refused.value.params or {})["field"] == "tools[1].name"


async def test_every_command_is_listed_with_its_description() -> None:
    async with handlers(replies()) as native:
        listed = await native.ask("commands/list")

    assert [command.name for command in listed.items] == [command.name for command in COMMANDS.values()]
    assert all(command.description for command in listed.items)


async def test_a_project_without_hooks_and_rules_lists_none(tmp_path: Path) -> None:
    async with handlers(replies()) as native:
        await native.ask("chat/open", chatId="c", projectPath=str(tmp_path))
        hooks = await native.ask("hooks/list", chatId="c")
        rules = await native.ask("rules/list", chatId="c")

    assert (hooks.items, rules.items) == ([], [])
