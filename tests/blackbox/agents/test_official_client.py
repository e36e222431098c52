"""The official Python client, which checks every message by its types, in both eras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult

from tests.support.spawner import Spawner

from .host import TIMEOUT

Era = Literal["auto", "legacy"]


@pytest.fixture
def server(tmp_path: Path, project: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "sidecar", "mcp"],
        env=Spawner(tmp_path).environment(),
        cwd=project,
    )


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_official_client_takes_every_answer(
    server: StdioServerParameters, mode: Era, version: str
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with Client(stdio_client(server), mode=mode) as client:
            spoken = client.protocol_version
            tools = [tool.name for tool in (await client.list_tools()).tools]
            ran: Any = await client.call_tool("run_code", {"language": "shell", "code": "echo official"})
            wrong: Any = await client.call_tool("run_code", {"language": "shell"})
            resources = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            read: Any = await client.read_resource(str(resources[0].uri))
            prompts = (await client.list_prompts()).prompts
            prompt: Any = await client.get_prompt(prompts[0].name, {"topic": "tests"})

    assert spoken == version
    assert "run_code" in tools
    assert len(templates) == 2
    assert "official" in ran.content[0].text
    assert wrong.is_error
    assert "echo official" in read.contents[0].text
    assert "tests" in prompt.messages[0].content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_shows_progress_and_forms_and_cancels(
    server: StdioServerParameters, mode: Era
) -> None:
    forms: list[str] = []
    steps: list[float] = []
    begun = anyio.Event()

    async def fill_in(context: Any, params: Any) -> ElicitResult:
        forms.append(params.message)
        return ElicitResult(action="accept", content={"delete": True})

    async def note_step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        begun.set()

    with anyio.fail_after(TIMEOUT):
        async with Client(stdio_client(server), mode=mode, elicitation_callback=fill_in) as client:
            loop = {"language": "shell", "code": "while true; do echo step; sleep 0.2; done"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "run_code", loop, None, note_step)
                await begun.wait()
                tasks.cancel_scope.cancel()
            purged: Any = await client.call_tool("purge", {"scope": "project"})

    assert steps
    assert [form.partition(":")[0] for form in forms] == ["Delete all that Sidecar keeps for this project"]
    assert purged.content[0].text.startswith("Deleted 1 chat")
