"""What `initialize` is answered with before the messages are imported is what the messages say."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from sidecar_protocol import limits
from sidecar_protocol.messages import connection, permissions

from sidecar.chat.sessions.arrivals import Delivery
from sidecar.frontends.native import greeting
from sidecar.model import content
from sidecar.policy import rules
from sidecar.system import launch
from sidecar.tools import base

TOOL = {"name": "a", "description": "Does it", "inputSchema": {"type": "object"}}


def _names(message: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(message)}


def test_the_early_responder_knows_the_members_of_the_message() -> None:
    assert _names(connection.InitializeParams) == limits.INITIALIZE_MEMBERS
    assert _names(connection.OfferedTool) == limits.TOOL_MEMBERS
    assert set(limits.CLIENT_MEMBERS) == _names(connection.ClientInfo)
    assert set(limits.CLIENT_CAPABILITIES) == _names(connection.ClientCapabilities)


def test_the_early_result_is_the_message() -> None:
    result = greeting.initialize_result("i")
    msgspec.convert(result, connection.InitializeResult)
    assert result.keys() == _names(connection.InitializeResult)
    assert result["limits"].keys() == _names(connection.Limits)
    assert result["server"].keys() == _names(connection.ServerInfo)


def test_what_is_offered_is_what_there_is() -> None:
    offered = greeting.initialize_result("i")["capabilities"]
    assert tuple(offered["deliveries"]) == get_args(Delivery)
    assert ("auto", *offered["framings"]) == launch.FRAMINGS


def test_the_words_of_permissions_are_those_of_the_program() -> None:
    for ours, contract in [
        (rules.PermissionKind, permissions.PermissionKind),
        (content.UserDecision, permissions.Decision),
        (content.ResolvedBy, permissions.ResolvedBy),
    ]:
        assert get_args(ours) == get_args(contract)
    assert get_args(base.ToolKind) == limits.TOOL_KINDS


@pytest.mark.parametrize(
    ("change", "plain"),
    [
        ({}, True),
        ({"processId": 1, "deltaMs": 60_000}, True),
        ({"processId": 0}, False),
        ({"deltaMs": -1}, False),
        ({"deltaMs": True}, False),
        ({"versions": [2]}, False),
        ({"versions": [2, 1]}, True),
        ({"tools": []}, True),
        ({"tools": [TOOL, {**TOOL, "name": "b-2", "kind": "read", "timeoutMs": 120_000}]}, True),
        ({"tools": [TOOL, TOOL]}, False),
        ({"tools": [{**TOOL, "name": "grep"}]}, False),
        ({"tools": [{**TOOL, "name": "a b"}]}, False),
        ({"tools": [{**TOOL, "kind": "paint"}]}, False),
        ({"tools": [{**TOOL, "kind": []}]}, False),
        ({"tools": [{**TOOL, "inputSchema": []}]}, False),
        ({"tools": [{**TOOL, "timeoutMs": 0}]}, False),
        ({"tools": [{**TOOL, "more": 1}]}, False),
        ({"tools": [{"name": "a"}]}, False),
        ({"tools": ["a"]}, False),
        ({"tools": {}}, False),
        ({"tools": [{**TOOL, "name": f"a{number}"} for number in range(greeting.MAX_TOOLS + 1)]}, False),
        ({"capabilities": {"input": 1}}, False),
        ({"client": {}}, False),
    ],
)
def test_only_plain_parameters_are_answered_early(change: dict[str, object], plain: bool) -> None:
    params = {"protocol": "sidecar", "versions": [1], "client": {"name": "a"}, **change}
    assert greeting.is_plain(params) is plain
