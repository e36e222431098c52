"""What `initialize` is answered with before the messages are imported is what the messages say."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from sidecar_protocol import limits
from sidecar_protocol.messages import connection, permissions

from sidecar.chat.sessions.arrivals import Delivery
from sidecar.model import content
from sidecar.policy import rules
from sidecar.server import bootstrap
from sidecar.system import launch


def _names(message: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(message)}


def test_the_early_responder_knows_the_members_of_the_message() -> None:
    assert {*limits.PLAIN_MEMBERS, "tools"} == _names(connection.InitializeParams)
    assert set(limits.CLIENT_MEMBERS) == _names(connection.ClientInfo)
    assert set(limits.CLIENT_CAPABILITIES) == _names(connection.ClientCapabilities)


def test_the_early_result_is_the_message() -> None:
    result = bootstrap.initialize_result("i")
    msgspec.convert(result, connection.InitializeResult)
    assert result.keys() == _names(connection.InitializeResult)
    assert result["limits"].keys() == _names(connection.Limits)
    assert result["server"].keys() == _names(connection.ServerInfo)


def test_what_is_offered_is_what_there_is() -> None:
    offered = bootstrap.initialize_result("i")["capabilities"]
    assert tuple(offered["deliveries"]) == get_args(Delivery)
    assert ("auto", *offered["framings"]) == launch.FRAMINGS


def test_the_words_of_permissions_are_those_of_the_program() -> None:
    for ours, contract in [
        (rules.PermissionKind, permissions.PermissionKind),
        (content.UserDecision, permissions.Decision),
        (content.ResolvedBy, permissions.ResolvedBy),
    ]:
        assert get_args(ours) == get_args(contract)


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
        ({"tools": []}, False),
        ({"capabilities": {"input": 1}}, False),
        ({"client": {}}, False),
    ],
)
def test_only_plain_parameters_are_answered_early(change: dict[str, object], plain: bool) -> None:
    params = {"protocol": "sidecar", "versions": [1], "client": {"name": "a"}, **change}
    assert bootstrap._is_plain(params) is plain
