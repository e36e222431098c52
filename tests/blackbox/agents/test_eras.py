"""The two eras of MCP, as raw messages."""

from __future__ import annotations

import pytest

from tests.support import processes

from .conftest import StartHost
from .host import Host

TOOLS = [
    "search_context", "get_output", "index_path", "fetch_url", "run_code", "run_batch",
    "open_files", "patches", "search_chats", "stats", "doctor", "purge",
]  # fmt: skip


def test_discover_names_versions_and_capabilities(host: Host) -> None:
    found = host.request("server/discover")

    assert found["resultType"] == "complete"
    assert found["supportedVersions"] == [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ]
    assert found["cacheScope"] == "private"
    assert found["ttlMs"] > 0
    assert set(found["capabilities"]) == {"tools", "resources", "prompts"}
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "sidecar"


def test_results_of_the_newer_era_have_their_members(host: Host) -> None:
    listed = host.request("tools/list")
    called = host.request("tools/call", name="stats", arguments={})

    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    assert called["resultType"] == "complete"
    assert "ttlMs" not in called


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_is_answered_in_its_version(start_host: StartHost, version: str) -> None:
    host = start_host(version=version)

    again = host.initialize()
    listed = host.request("tools/list")

    assert again["protocolVersion"] == version
    assert list(listed) == ["tools"]


def test_an_unknown_handshake_version_gets_the_newest(legacy_host: Host) -> None:
    found = legacy_host.request(
        "initialize", protocolVersion="1999-01-01", clientInfo={"name": "x"}, capabilities={}
    )

    assert found["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("version", ["2027-01-01", "2025-11-25", "", 7])
def test_an_unknown_version_of_a_request_is_refused_with_the_known_ones(host: Host, version: object) -> None:
    error = host.refused("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": version})

    assert error["code"] == -32022
    assert "2026-07-28" in error["data"]["supported"]
    assert error["data"]["requested"] == (version if isinstance(version, str) else "")


def test_a_server_that_has_listed_its_tools_is_small(host: Host) -> None:
    """Most sessions of an agent start it and never call it; what it imports also takes the time of its start."""
    host.request("tools/list")

    assert processes.rss_bytes(host.process.pid) < 40_000_000


def test_a_request_before_the_handshake_says_what_to_send(start_host: StartHost) -> None:
    host = start_host(version="2026-07-28")
    host.version = "2025-11-25"  # no `_meta`, and no `initialize` was sent

    assert "initialize" in host.refused("tools/list")["message"]


def test_a_cancelled_call_is_not_answered_and_a_late_cancel_is_ignored(host: Host) -> None:
    slow = host.send("tools/call", name="run_code", arguments={"language": "shell", "code": "sleep 60"})
    host.request("ping")
    for _ in range(2):
        host.write(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": slow, "reason": "x"},
            }
        )

    assert "done" in host.text("run_code", language="shell", code="echo done")
    assert slow not in host._kept


@pytest.mark.parametrize("line", [b"[]", b"nonsense", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 100_000])
def test_garbage_is_answered_and_the_server_lives_on(host: Host, line: bytes) -> None:
    host.write_line(line)

    assert host.request("ping") == {"resultType": "complete"}


def test_an_unknown_method_and_tool_are_errors_with_the_nearest_name(host: Host) -> None:
    assert host.refused("tools/lst")["code"] == -32601
    assert "run_code" in host.refused("tools/call", name="run_cod", arguments={})["message"]


def test_progress_is_reported_to_a_request_with_a_token(host: Host) -> None:
    code = "import time\nfor i in range(4): print('step', i, flush=True); time.sleep(0.4)"
    host.request(
        "tools/call",
        name="run_code",
        arguments={"language": "python", "code": code},
        _meta={"progressToken": "p1"},
    )

    seen = [one["params"] for one in host.notifications]
    assert seen
    assert {one["progressToken"] for one in seen} == {"p1"}
    assert [one["progress"] for one in seen] == sorted({one["progress"] for one in seen})
