"""The handlers of answers: to a permission and a question; and of the patch that a permitted call has made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from sidecar.chat.services.client_app import PermissionAnswer, PermissionRequest
from sidecar.model import JsonObject
from sidecar.model.content import PermissionOutcome
from sidecar.model.failures import Refused
from sidecar.providers.base import Completion, ToolCall
from tests.unit.chat.memory import ScriptedApp, finish
from tests.unit.engines.sinks import ScriptedReplies

from .native import Handlers, handlers

WRITE: JsonObject = {"path": "note.txt", "content": "new\n"}


class SilentApp(ScriptedApp):
    """An app that shows a permission and leaves the answer to another client."""

    def __init__(self) -> None:
        super().__init__("allow_once")
        self.shown = anyio.Event()

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        await super().ask_permission(request)
        self.shown.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")


def writing() -> ScriptedReplies:
    return ScriptedReplies(
        [ToolCall("c", "write_file", WRITE), Completion("tool_calls")], [Completion("end_turn")]
    )


async def write_a_file(native: Handlers, app: SilentApp, project: Path, decision: str) -> Any:
    """Let the model write a file, answer the permission, and return the outcome."""
    await native.ask("chat/open", chatId="c", projectPath=str(project))
    await native.ask("prompt/send", chatId="c", promptId="p", text="go")
    await app.shown.wait()
    outcome = await native.ask(
        "permission/answer", permissionId=app.asked[0]["permissionId"], decision=decision, feedback="please"
    )
    (session,) = native.chats.sessions
    await finish(session)
    return outcome


@pytest.mark.parametrize(("decision", "is_written"), [("allow_once", True), ("deny_once", False)])
async def test_a_permission_is_answered_by_another_client(
    tmp_path: Path, decision: str, is_written: bool
) -> None:
    app = SilentApp()
    async with handlers(writing(), app=app) as native:
        outcome = await write_a_file(native, app, tmp_path, decision)

    assert (outcome.decision, outcome.by, outcome.feedback) == (decision, "user", "please")
    assert (tmp_path / "note.txt").exists() is is_written


async def test_a_second_answer_is_refused_with_the_first(tmp_path: Path) -> None:
    app = SilentApp()
    async with handlers(writing(), app=app) as native:
        first = await write_a_file(native, app, tmp_path, "allow_once")
        with pytest.raises(Refused) as refused:
            await native.ask("permission/answer", permissionId=first.permission_id, decision="deny_once")

    assert refused.value.name == "request_closed"
    assert msgspec.convert(refused.value.facts["outcome"], PermissionOutcome).decision == "allow_once"


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("permission/answer", {"permissionId": "pe-0", "decision": "allow_once"}, "permissionId"),
        ("input/answer", {"inputId": "in-0", "action": "accept", "values": {}}, "inputId"),
    ],
)
async def test_an_answer_to_nothing_is_refused_by_its_name(
    method: str, params: dict[str, Any], field: str
) -> None:
    async with handlers(ScriptedReplies()) as native:
        with pytest.raises(Refused) as refused:
            await native.ask(method, **params)

    assert (refused.value.name, (refused.value.params or {})["field"]) == ("not_found", field)


async def test_a_patch_is_exported_reverted_and_applied_again(tmp_path: Path) -> None:
    app = SilentApp()
    file = tmp_path / "note.txt"
    async with handlers(writing(), app=app) as native:
        await write_a_file(native, app, tmp_path, "allow_once")
        exported = await native.ask("patches/export", chatId="c")
        tried = await native.ask("patches/revert", chatId="c", path="note.txt", dryRun=True)
        there = file.exists()
        reverted = await native.ask("patches/revert", chatId="c", path="note.txt")
        gone = not file.exists()
        applied = await native.ask("patches/apply", chatId="c", path="note.txt")

    assert "+new" in exported.patch
    assert (there, gone, file.read_text()) == (True, True, "new\n")
    statuses = [[patch.status for patch in done.items] for done in (tried, reverted, applied)]
    assert statuses[1:] == [["reverted"], ["applied"]]
