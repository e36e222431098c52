"""A server's tools in a chat: under which names, with which leave, and what their answers become."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from sidecar.model.content import GivenBlock
from sidecar.system import redact
from sidecar.tools.base import Intent, ToolInput, ToolOutcome
from sidecar.tools.mcp import parse_servers, servers
from tests.support.patience import PATIENCE_S
from tests.support.processes import poll_until
from tests.unit.tools.context import properties_of
from tests.unit.tools.mcp.mounting import Mount, by_sdk, mounting, plain, processes, token_of


async def test_a_server_of_the_sdk_is_mounted_called_and_its_errors_are_told(mount: Mount) -> None:
    tools = await mount.tools(by_sdk())
    add, divide = tools["mcp__sdk__add"], tools["mcp__sdk__divide"]

    assert (add.kind, add.runs_alone, add.title(ToolInput({}))) == ("read", False, "sdk: Add up")
    assert (divide.kind, divide.runs_alone) == ("other", True)
    assert add.spec.description == "Add two numbers."
    assert set(properties_of(add.spec.input_schema)) == {"a", "b"}
    assert (await add.prepare(ToolInput({}), mount.context)).intent == Intent(
        "mcp", "sdk/add", reads_only=True
    )
    assert (await divide.prepare(ToolInput({}), mount.context)).intent == Intent("mcp", "sdk/divide")
    assert await mount.call(add, a=2, b=3) == ToolOutcome("5")
    failed = await mount.call(divide, a=1, b=0)
    assert failed.failed
    assert "division" in failed.text


async def test_a_server_that_knows_only_the_newest_handshake_is_mounted(mount: Mount) -> None:
    tools = await mount.tools(plain("modern"))

    assert await mount.call(tools["mcp__plain__echo"], x=1) == ToolOutcome('{"x": 1}')


async def test_every_kind_of_answer_becomes_words(mount: Mount) -> None:
    tools = await mount.tools(plain())
    names = ["echo", "fail", "picture", "data", "half_an_emoji", "refuse", "nonsense"]
    outcomes = {name: await mount.call(tools[f"mcp__plain__{name}"], x=1) for name in names}

    picture = """here it is
[image: image/png, 4 bytes]
[resource: x://1, text/plain, 6 characters]
inside
[resource: x://2, unknown type, 3 bytes]
[resource: x://3, unknown type]"""
    assert outcomes == {
        "echo": ToolOutcome('{"x": 1}'),
        "fail": ToolOutcome("no such thing", failed=True),
        "picture": ToolOutcome(picture, media=(GivenBlock(type="image", data="AAAAAA=="),)),
        "data": ToolOutcome('{"answer": 42}'),
        "half_an_emoji": ToolOutcome("a\ufffdb"),
        "refuse": ToolOutcome("The server refused the call: I do not want to", failed=True),
        "nonsense": ToolOutcome(
            "The call failed: the server's answer is not what MCP allows: `content`: Input should be a valid list",
            failed=True,
        ),
    }


async def test_progress_is_shown_while_a_call_runs(mount: Mount) -> None:
    tools = await mount.tools(plain())

    assert await mount.call(tools["mcp__plain__work"]) == ToolOutcome("done")
    assert mount.context.shown == ["1 of 2\n", "2 of 2\n"]


async def test_a_list_of_tools_that_changes_is_read_again(mount: Mount) -> None:
    config = plain()
    tools = await mount.tools(config)
    before = len(tools)
    await mount.call(tools["mcp__plain__grow"])
    await mount.until(lambda state: state.tools == before + 1)

    grown = (await mount.tools(config))["mcp__plain__grown"]
    assert (grown.kind, grown.title(ToolInput({}))) == ("read", "plain: Has grown")


async def test_names_are_unique_short_and_plain_and_what_is_too_much_is_left_out_by_name(
    mount: Mount,
) -> None:
    tools = await mount.tools(plain("odd"))
    state = mount.servers.states()[0]
    by_start = {name[:16]: tools[name].spec for name in list(tools)[-3:]}

    assert state.left_out == ("echo", "n" * 256)
    assert state.tools == len(tools)
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in tools)
    assert set(by_start) == {"mcp__plain__a_b_", "mcp__plain__llll", "mcp__plain__wide"}
    assert len(by_start["mcp__plain__a_b_"].description) == 1000
    assert by_start["mcp__plain__wide"].input_schema == {"type": "object"}
    assert "too long to be shown" in by_start["mcp__plain__wide"].description


async def test_two_servers_whose_tools_would_have_one_name_keep_both(mount: Mount) -> None:
    tools = await mount.tools(plain("odd", name="plain"), plain(name="plain__x"))
    first, second = (name for name in tools if name.startswith("mcp__plain__x__echo"))

    assert (first, len(second)) == ("mcp__plain__x__echo", len(first) + 9)
    assert [tools[name].title(ToolInput({})) for name in (first, second)] == [
        "plain: x__echo",
        "plain__x: echo",
    ]
    assert len(tools) == sum(state.tools for state in mount.servers.states())


async def test_of_a_thousand_tools_128_are_mounted_and_the_others_named(mount: Mount) -> None:
    tools = await mount.tools(plain("many"))
    state = mount.servers.states()[0]

    assert (len(tools), state.tools, state.left_out[-1]) == (128, 128, "extra_999")
    assert state.tools + len(state.left_out) > 1000


async def test_a_list_without_end_is_read_to_its_bound(mount: Mount) -> None:
    tools = await mount.tools(plain("endless-list"))

    assert "mcp__plain__echo" in tools
    assert len(mount.servers.states()[0].left_out) > len(tools)


async def test_a_huge_answer_is_cut_and_says_so(mount: Mount) -> None:
    tools = await mount.tools(plain())
    outcome = await mount.call(tools["mcp__plain__huge"], size=3 * 1024 * 1024)

    assert len(outcome.text) < 1024 * 1024 + 100
    assert outcome.text.endswith("… 2097152 more characters are left out")


async def test_two_chats_with_the_same_server_share_its_process(mount: Mount) -> None:
    config = plain()
    again = parse_servers(
        [{"name": config.name, "command": config.command, "args": list(config.args)}], "mcpServers"
    )[0]
    other = plain(name="other")
    mount.servers.want([config])
    mount.servers.want([again])
    first = await mount.tools(config)
    second = await mount.tools(again, other)

    pids = {
        json.loads((await mount.call(tool)).text)["pid"]
        for tool in (first["mcp__plain__where"], second["mcp__plain__where"])
    }
    assert pids == processes(token_of(config))
    assert len(pids) == 1
    assert [state.name for state in mount.servers.states()] == ["plain", "other"]
    assert [state.name for state in mount.servers.states([other])] == ["other"]


async def test_the_server_that_was_wanted_longest_ago_makes_room(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MAX_CONNECTIONS", 2)
    first, second, third = (plain(name=name) for name in ("first", "second", "third"))
    await mount.tools(first, second)
    await mount.tools(first, third)

    assert [state.name for state in mount.servers.states()] == ["first", "third"]
    assert poll_until(lambda: not processes(token_of(second)), PATIENCE_S)


async def test_a_server_that_is_switched_off_is_not_started(mount: Mount) -> None:
    config = plain(enabled=False)

    assert await mount.tools(config) == {}
    assert mount.servers.states() == []


async def test_a_server_gets_little_of_our_environment_and_none_of_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redact, "_spellings", ())
    redact.add_secrets(["sk-very-secret-key"])
    ours = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk-very-secret-key",
        "SHELL": "/x/sk-very-secret-key",
        "ANY": "1",
    }
    async with mounting(tmp_path, ours) as mount:
        config = plain(env={"MINE": "yes", "MY_TOKEN": "hush-hush-hush"}, cwd=str(tmp_path))
        tools = await mount.tools(config)
        found = json.loads((await mount.call(tools["mcp__plain__where"])).text)

    assert found["cwd"] == str(tmp_path)
    assert set(found["environ"]) - {"LC_CTYPE"} == {"PATH", "MINE", "MY_TOKEN", "SIDECAR_MCP_SERVER"}
    assert redact.redact_text("it is hush-hush-hush") == "it is (hidden)"


async def test_the_sdk_is_not_imported_before_a_server_is_wanted() -> None:
    code = (
        "import sys, sidecar.tools.mcp; print({'mcp', 'mcp_types', 'pydantic', 'httpx2'} & set(sys.modules))"
    )
    process = await anyio.run_process([sys.executable, "-c", code], stderr=subprocess.PIPE)

    assert process.stdout.strip() == b"set()"
