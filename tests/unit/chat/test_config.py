"""The types that the contract gives the keys of a chat's configuration are those that the program takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sidecar_protocol.messages import configuration as contract

from sidecar.chat.sessions.config import ChatConfig
from sidecar.model.chats import Budgets, CompactionConfig, GateSwitches, ToolChoice
from sidecar.tools.mcp.config import ServerConfig

PAIRS = [
    (contract.ChatConfig, ChatConfig),
    (contract.Budgets, Budgets),
    (contract.CompactionConfig, CompactionConfig),
    (contract.GateSwitches, GateSwitches),
    (contract.ToolChoice, ToolChoice),
    (contract.McpServer, ServerConfig),
]

VALUES: dict[str, dict[str, Any]] = {
    "ChatConfig": {
        "model": "echo:",
        "mode": "accept-edits",
        "window": 8000,
        "exclude": ["gitDiff"],
        "meta": 1,
    },
    "Budgets": {"perFile": 1, "openFiles": 1, "diffs": 1, "gitDiff": 1, "retrieval": 1},
    "CompactionConfig": {"enabled": False, "background": 0.5, "blocking": 0.9, "postponedUntil": 3},
    "GateSwitches": {"openFiles": "never", "patches": "always", "gitDiff": "auto", "retrieval": "never"},
    "ToolChoice": {"allow": ["grep"], "deny": []},
    "McpServer": {"name": "docs", "args": ["-y"], "env": {"A": "b"}, "timeoutMs": 5, "enabled": True},
}


@pytest.mark.parametrize(("told", "taken"), PAIRS, ids=lambda one: one.__name__)
def test_the_contract_names_every_key(told: type[msgspec.Struct], taken: type[msgspec.Struct]) -> None:
    told_names = {field.encode_name for field in msgspec.structs.fields(told)}

    assert told_names == {field.encode_name for field in msgspec.structs.fields(taken)}


@pytest.mark.parametrize(("told", "taken"), PAIRS, ids=lambda one: one.__name__)
def test_both_take_the_same_values(told: type[msgspec.Struct], taken: type[msgspec.Struct]) -> None:
    values = VALUES[told.__name__]

    for struct in (told, taken):
        converted = msgspec.json.decode(msgspec.json.encode(msgspec.convert(values, struct)))
        assert {name: converted.get(name, values[name]) for name in values} == values
        for name in values.keys() - {"meta"}:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert({**VALUES[told.__name__], name: object}, struct)
