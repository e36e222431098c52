"""Parameters of wrong types in every method: each request gets one answer, an error that matches the schema."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.frontends.acp.messages import METHODS

from .conftest import Start
from .editor import Refused

WRONG: list[Any] = [None, 1, -1.5, True, "", "x" * 5000, "\x00", [], [[]], {}, {"type": "text"}]
NAMES = ("sessionId", "cwd", "mcpServers", "prompt", "modeId", "configId", "value", "cursor", "_meta")
ACCEPTED = {"session/list", "session/close", "session/delete", "logout", "auth/logout", "initialize"}
"""Methods that a lenient reading of nonsense may serve: they create nothing, and end nothing that exists."""


@pytest.mark.parametrize("version", [1, 2])
def test_nonsense_is_refused_and_ends_nothing(start: Start, version: int) -> None:
    editor = start(version=version)
    sent: dict[int, str] = {}
    for method in METHODS[version]:
        if method != "initialize":
            sent |= {editor.send(method, **dict.fromkeys(NAMES, value)): method for value in WRONG}

    served, codes = set(), set()
    for id, method in sent.items():
        try:
            editor.wait(id)
            served.add(method)
        except Refused as refused:
            codes.add(refused.code)
    assert codes == {-32602}
    assert served <= ACCEPTED
    session = editor.request("session/new", cwd=str(editor.folder), mcpServers=[])["sessionId"]
    editor.prompt(session, "Hello")
    editor.wait_update("agent_message_chunk")
