"""The official Python client, which checks every message by its types, in both eras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.spawner import Spawner

from .host import TIMEOUT


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_official_client_takes_every_answer(
    tmp_path: Path, project: Path, mode: Literal["auto", "legacy"], version: str
) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "sidecar", "mcp"],
        env=Spawner(tmp_path).environment(),
        cwd=project,
    )
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
    assert "run_code" in read.contents[0].text
    assert "tests" in prompt.messages[0].content.text
