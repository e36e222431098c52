"""The handlers of open files, patches, permission rules, branches and purges, in a project on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.failures import Refused

from .native import Handlers, handlers, replies


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("a.py", "b.py", "c.txt"):
        (folder / name).write_text(f"# {name}\n")
    return folder


async def open_chat(native: Handlers, project: Path) -> Any:
    return await native.ask("chat/open", chatId="c", projectPath=str(project))


def paths(result: Any) -> list[str]:
    return [os.path.basename(file.path) for file in result.files]


async def test_files_are_opened_by_glob_pinned_and_closed(project: Path) -> None:
    async with handlers(replies()) as native:
        await open_chat(native, project)
        opened = await native.ask("files/open", chatId="c", glob="*.py")
        pinned = await native.ask("files/pin", chatId="c", path="b.py")
        closed = await native.ask("files/close", chatId="c", path="a.py")
        cleared = await native.ask("files/clear", chatId="c")

    assert sorted(paths(opened)) == ["a.py", "b.py"]
    assert [file.path for file in pinned.files if file.pinned] == [str(project / "b.py")]
    assert (paths(closed), paths(cleared)) == (["b.py"], [])
    assert opened.seq < pinned.seq < closed.seq < cleared.seq


async def test_a_file_that_vanished_is_listed_as_missing(project: Path) -> None:
    async with handlers(replies()) as native:
        await open_chat(native, project)
        await native.ask("files/open", chatId="c", path="c.txt")
        (project / "c.txt").unlink()
        (listed,) = (await native.ask("files/list", chatId="c")).files

    assert (listed.path, listed.state) == (str(project / "c.txt"), "missing")


async def test_a_file_outside_the_project_is_not_opened(project: Path) -> None:
    (project.parent / "secret.txt").write_text("secret")
    async with handlers(replies()) as native:
        await open_chat(native, project)
        with pytest.raises(Refused):
            await native.ask("files/open", chatId="c", path="../secret.txt")
        listed = await native.ask("files/list", chatId="c")

    assert listed.files == []


async def test_without_edits_there_are_no_patches(project: Path) -> None:
    async with handlers(replies()) as native:
        await open_chat(native, project)
        listed = await native.ask("patches/list", chatId="c")
        cleared = await native.ask("patches/clear", chatId="c")

    assert (listed.items, listed.next_cursor, cleared.cleared) == ([], None, 0)


async def test_a_rule_is_put_listed_and_removed(project: Path) -> None:
    async with handlers(replies()) as native:
        await open_chat(native, project)
        put = await native.ask(
            "permissionRules/set", chatId="c", scope="chat", effect="deny", rule="run(rm *)"
        )
        listed = await native.ask("permissionRules/list", chatId="c", scope="chat")
        removed = await native.ask("permissionRules/remove", chatId="c", id=put.rule_id)

    (rule,) = listed.items
    assert (rule.id, rule.effect, rule.kind, rule.pattern, rule.rule) == (
        put.rule_id,
        "deny",
        "run",
        "rm *",
        "run(rm *)",
    )
    assert put.rule_id not in [one.id for one in removed.items]


async def test_a_fork_has_the_turns_up_to_its_place() -> None:
    async with handlers(replies("one", "two")) as native:
        await native.run("1")
        first = (await native.ask("chat/history", chatId="c")).turns[0].id
        await native.run("2")
        forked = await native.ask("chat/fork", chatId="c", newChatId="d", at={"turnId": first})

    assert (forked.status, forked.chat_id, len(forked.turns)) == ("created", "d", 1)


async def test_a_rewind_hides_the_turns_after_its_place() -> None:
    async with handlers(replies("one", "two")) as native:
        await native.run("1")
        await native.run("2")
        first, second = (turn.id for turn in (await native.ask("chat/history", chatId="c")).turns)
        tried = await native.ask("chat/rewind", chatId="c", to={"turnId": first}, dryRun=True)
        rewound = await native.ask("chat/rewind", chatId="c", to={"turnId": first})
        left = await native.ask("chat/history", chatId="c")

    assert (tried.hidden, tried.seq) == ([second], None)
    assert (rewound.hidden, rewound.head) == ([second], first)
    assert [turn.id for turn in left.turns] == [first]


async def test_a_dry_purge_counts_and_removes_nothing() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        counted = await native.ask("data/purge", chatId="c", dryRun=True)
        purged = await native.ask("data/purge", chatId="c", confirm=True)

    assert (counted.removed.turns, counted.dry_run) == (1, True)
    assert (purged.removed.turns, purged.removed.chats, purged.dry_run) == (1, 1, False)


async def test_the_request_is_shown_before_it_is_sent() -> None:
    async with handlers(replies("Hi")) as native:
        await native.run("Hello")
        shown = await native.ask("chat/context", chatId="c", text="And now?", includeText=True)
        without = await native.ask("chat/context", chatId="c", text="And now?")

    assert any("And now?" in (block.text or "") for block in shown.blocks)
    assert [block.text for block in without.blocks] == [None] * len(without.blocks)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a purge without confirmation": ("data/purge", {}, "confirm"),
    "no patch is named": ("patches/show", {}, "id"),
    "a page of no patches": ("patches/list", {"limit": 0}, "limit"),
    "a diff of no tokens": ("git/diff", {"maxTokens": 0}, "maxTokens"),
    "a budget of nothing": ("chat/context", {"budget": 0}, "budget"),
    "text and content": (
        "chat/context",
        {"text": "a", "content": [{"type": "text", "text": "a"}]},
        "text",
    ),
    "a compaction postponed into the past": ("chat/compact", {"postponeTurns": -1}, "postponeTurns"),
    "a rule in two ways": (
        "permissionRules/set",
        {"scope": "chat", "effect": "deny", "rule": "run(a)", "kind": "run"},
        "rule",
    ),
    "a rule in no way": ("permissionRules/set", {"scope": "chat", "effect": "deny"}, "rule"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_wrong_parameter_is_refused_by_its_name(project: Path, kind: str) -> None:
    method, params, field = REFUSED[kind]
    async with handlers(replies()) as native:
        await open_chat(native, project)
        with pytest.raises(Refused) as refused:
            await native.ask(method, chatId="c", **params)

    assert (refused.value.params or {})["field"] == field
