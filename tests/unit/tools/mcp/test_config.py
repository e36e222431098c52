"""What may stand in a configuration as an MCP server, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.model.failures import Refused
from sidecar.tools.mcp import ServerConfig, parse_servers

COMMAND = {"name": "files", "command": "npx"}
ADDRESS = {"name": "web", "url": "https://example.org/mcp"}


def test_a_command_and_an_address_are_servers_with_the_limits_they_name() -> None:
    entries = [
        {
            **COMMAND,
            "args": ["-y", "x"],
            "env": {"A": "b"},
            "cwd": "/tmp",
            "timeoutMs": 5,
            "startTimeoutMs": 6,
        },
        {**ADDRESS, "headers": {"Authorization": "Bearer x"}, "enabled": False},
    ]

    assert parse_servers(entries, "mcpServers") == [
        ServerConfig("files", "npx", ("-y", "x"), {"A": "b"}, "/tmp", timeout_ms=5, start_timeout_ms=6),
        ServerConfig(
            "web", url="https://example.org/mcp", headers={"Authorization": "Bearer x"}, enabled=False
        ),
    ]


@pytest.mark.parametrize(
    ("entry", "place", "words"),
    [
        ("npx", "", "an object"),
        ({}, ".name", "missing required field `name`"),
        ({**COMMAND, "name": "a b"}, ".name", "letters"),
        ({**COMMAND, "name": "x" * 65}, ".name", "letters"),
        ({**COMMAND, "name": "x\n"}, ".name", "letters"),
        ({"name": "a"}, "", "either `command`"),
        ({**COMMAND, **ADDRESS}, "", "either `command`"),
        ({**COMMAND, "comand": "x"}, ".comand", "known are name, command"),
        ({**COMMAND, "args": "x"}, ".args", "Expected `array`"),
        ({**COMMAND, "args": ["x", 1]}, ".args[1]", "Expected `str`"),
        ({**COMMAND, "args": ["a\0b"]}, ".args", "null characters"),
        ({**COMMAND, "args": ["a"] * 300}, ".args", "at most 256"),
        ({**COMMAND, "command": " "}, ".command", "a program"),
        ({**COMMAND, "cwd": "here"}, ".cwd", "absolute"),
        ({**COMMAND, "env": {"A=B": "c"}}, ".env", "'A=B'"),
        ({**COMMAND, "env": {"A": 1}}, ".env[...]", "Expected `str`"),
        ({**COMMAND, "headers": {"A": "b"}}, ".headers", "`url` only"),
        ({**COMMAND, "timeoutMs": 0}, ".timeoutMs", "from 1"),
        ({**COMMAND, "startTimeoutMs": 10**9}, ".startTimeoutMs", "from 1"),
        ({**ADDRESS, "args": ["x"]}, ".args", "`command` only"),
        ({**ADDRESS, "url": "ftp://example.org"}, ".url", "http://"),
        ({**ADDRESS, "url": "http://[half"}, ".url", "http://"),
        ({**ADDRESS, "url": "http://h:99999/"}, ".url", "http://"),
        ({**ADDRESS, "url": "https://me:secret@example.org/"}, ".url", "headers"),
        ({**ADDRESS, "headers": {"A": "b\r\nC: d"}}, ".headers.A", "control characters"),
        ({**ADDRESS, "headers": {"A:": "b"}}, ".headers", "'A:'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(entry: Any, place: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_servers([COMMAND | {"name": "first"}, entry], "set.mcpServers")

    assert refused.value.params is not None
    assert refused.value.params["field"] == f"set.mcpServers[1]{place}"
    assert words in refused.value.message


def test_two_servers_of_one_name_and_too_many_are_refused() -> None:
    with pytest.raises(Refused, match=r"mcpServers\[1\]\.name.*already"):
        parse_servers([COMMAND, {**ADDRESS, "name": "files"}], "mcpServers")
    with pytest.raises(Refused, match="at most 32"):
        parse_servers([{**COMMAND, "name": f"n{n}"} for n in range(33)], "mcpServers")


def test_nothing_of_a_server_but_its_name_is_in_its_repr() -> None:
    config = parse_servers([{**ADDRESS, "headers": {"Authorization": "Bearer hush"}}], "mcpServers")[0]

    assert repr(config) == "ServerConfig('web')"
