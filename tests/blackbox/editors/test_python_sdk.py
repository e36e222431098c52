"""The official Python SDK drives `sidecar acp`: its own types read every frame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import acp
import anyio
from acp import schema

from tests.support import processes
from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner

from .test_work import WRITE, script_of


class Client:
    """Keeps what it gets, and allows everything."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.metas: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        self.updates.append(update)
        self.metas.append(meta)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **meta: Any
    ) -> schema.RequestPermissionResponse:
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    @property
    def said(self) -> str:
        chunks = [each for each in self.updates if isinstance(each, schema.AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks)


async def test_the_official_client_works_with_a_session(tmp_path: Path) -> None:
    spawner, client = Spawner(tmp_path), Client()
    environment = spawner.environment(model=script_of(tmp_path, WRITE, {"text": "Done."}))
    arguments = ["-m", "sidecar", "acp"]
    with anyio.fail_after(PATIENCE_S):
        async with acp.spawn_agent_process(
            cast("acp.Client", client), sys.executable, *arguments, env=environment, cwd=tmp_path
        ) as (editor, process):
            hello = await editor.initialize(acp.PROTOCOL_VERSION)
            session = await editor.new_session(cwd=str(tmp_path), mcp_servers=[], sidecar={"chatId": "tab-7"})
            answer = await editor.prompt(session_id=session.session_id, prompt=[acp.text_block("Write it")])
            await editor.set_session_mode(session_id=session.session_id, mode_id="auto")
            options = await editor.set_config_option(
                config_id="mode", session_id=session.session_id, value="read-only"
            )
            listed = await editor.list_sessions(cwd=str(tmp_path))
            lived = len(client.updates)
            await editor.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            await editor.close_session(session_id=session.session_id)
        code = await process.wait()

    assert hello.agent_info is not None
    assert (hello.agent_info.name, hello.protocol_version) == ("sidecar", 1)
    assert session.session_id == "sc-tab-7-bf133f99bd6e5d06"
    assert (answer.stop_reason, client.said) == ("end_turn", "Done.Done.")
    assert (tmp_path / "new.txt").read_text() == "One line\n"
    assert options.config_options[0].current_value == "read-only"
    assert [each.title for each in listed.sessions] == ["Write it"]
    assert any(isinstance(each, schema.UserMessageChunk) for each in client.updates[lived:])
    assert any(meta.get("sidecar", {}).get("seq") for meta in client.metas)
    assert (code, processes.pids_with_mark(spawner.mark)) == (0, set())
