"""Which frontend a client gets: by the command, or by its first message. No process and no chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest
from sidecar_protocol.framing import Frame, Oversized
from sidecar_protocol.jsonrpc import Request

from sidecar.frontends.native.frontend import NativeFrontend
from sidecar.frontends.native.greeting import NAME as NATIVE
from sidecar.frontends.registry import BUILT_IN, FrontendConnection, FrontendEntry, FrontendRegistry
from sidecar.server.connection import MAX_HELD_STATUSES, ClientConnection, load_frontend

if TYPE_CHECKING:
    from sidecar.frontends.base import Frontend

Json = dict[str, Any]


class ListFrontend:
    """Keeps what it gets, under its name."""

    def __init__(self, name: str, log: list[Any]) -> None:
        self._name = name
        self._log = log
        self.app: Any = f"the app of {name}"

    def receive(self, frame: Frame) -> None:
        self._log.append((self._name, frame))

    def send_status(self, type: str, data: Mapping[str, object]) -> None:
        self._log.append((self._name, type, data))

    def report_access(self, session: Any) -> None:
        self._log.append((self._name, "access", session))

    def reset(self) -> None:
        self._log.append((self._name, "reset"))

    def refuse(self) -> None:
        self._log.append((self._name, "refuse"))

    async def idle(self) -> None:
        self._log.append((self._name, "idle"))

    def abandon(self) -> None:
        self._log.append((self._name, "abandon"))


def entry(name: str, log: list[Any], speaks: Callable[[Request], bool] | None = None) -> FrontendEntry:
    def create(connection: FrontendConnection) -> Frontend:
        log.append((name, "created", connection))
        return ListFrontend(name, log)

    return FrontendEntry(name, lambda: create, speaks)


def version_is(kind: type) -> Callable[[Request], bool]:
    return lambda first: first.method == "initialize" and type(first.params.get("protocolVersion")) is kind


def registry(log: list[Any]) -> FrontendRegistry:
    """As later: one dialect begins with a number, one with a date, one is chosen by its command alone."""
    return FrontendRegistry(
        [
            entry(NATIVE, log),
            entry("acp", log, version_is(int)),
            entry("mcp", log, version_is(str)),
            entry("page", log),
        ]
    )


def connect(log: list[Any], chosen: str | None = None) -> ClientConnection:
    return ClientConnection(registry(log), chosen, lambda greeting: cast("FrontendConnection", greeting))


def initialize(**params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()


OURS = initialize(protocol="sidecar", versions=[1], client={"name": "app"})
ACP = initialize(protocolVersion=1, clientCapabilities={})
MCP = initialize(protocolVersion="2025-11-25", capabilities={})

FIRST_FRAMES: dict[str, tuple[Frame, str]] = {
    "ours": (OURS, NATIVE),
    "a number as version": (ACP, "acp"),
    "a date as version": (MCP, "mcp"),
    "true as version": (initialize(protocolVersion=True), NATIVE),
    "no version": (initialize(), NATIVE),
    "a version in another method": (ACP.replace(b"initialize", b"session/new"), NATIVE),
    "a notification": (b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}', NATIVE),
    "a response": (b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}', NATIVE),
    "a batch": (b"[" + ACP + b"]", NATIVE),
    "parameters by position": (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[1]}', NATIVE),
    "another JSON-RPC": (ACP.replace(b'"2.0"', b'"1.0"'), NATIVE),
    "no JSON": (b"GET / HTTP/1.1", NATIVE),
    "bytes that are no text": (b"\xff\xfe\x00", NATIVE),
    "a frame over the limit": (Oversized(1 << 30, "too_large"), NATIVE),
}


@pytest.mark.parametrize("kind", FIRST_FRAMES)
def test_the_first_frame_chooses_the_dialect_and_goes_to_it(kind: str) -> None:
    frame, name = FIRST_FRAMES[kind]
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    connection.receive([frame])

    assert log == [(name, "created", None), (name, frame)]


@pytest.mark.parametrize("later", [ACP, MCP, OURS, b"no JSON"])
def test_later_frames_do_not_change_the_dialect(later: bytes) -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    connection.receive([MCP, later])
    connection.receive([later])

    assert log == [("mcp", "created", None), ("mcp", MCP), ("mcp", later), ("mcp", later)]


@pytest.mark.parametrize("name", [NATIVE, "acp", "mcp", "page"])
@pytest.mark.parametrize("first", [OURS, ACP, MCP])
def test_a_command_chooses_the_dialect_before_any_message(name: str, first: bytes) -> None:
    log: list[Any] = []
    connection = connect(log, name)

    connection.begin(None)
    connection.receive([first])

    assert log == [(name, "created", None), (name, first)]


def test_an_initialize_that_the_bootstrap_answered_is_ours() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin({"protocol": "sidecar"})
    connection.receive([ACP])

    assert log == [(NATIVE, "created", {"protocol": "sidecar"}), (NATIVE, ACP)]


def test_an_initialize_that_the_bootstrap_answered_in_a_dialect_is_of_that_dialect() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin({"protocolVersion": 1}, "acp")
    connection.receive([OURS])

    assert log == [("acp", "created", {"protocolVersion": 1}), ("acp", OURS)]


def test_one_dialect_needs_no_first_message() -> None:
    log: list[Any] = []
    only = FrontendRegistry([entry(NATIVE, log), entry("page", log)])
    connection = ClientConnection(only, None, lambda greeting: cast("FrontendConnection", greeting))

    connection.begin(None)
    connection.send_status("storage", {"state": "ready"})

    assert log == [(NATIVE, "created", None), (NATIVE, "storage", {"state": "ready"})]


def test_statuses_wait_for_the_first_message_and_are_sent_in_its_dialect() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    connection.send_status("storage", {"state": "ready"})
    connection.send_status("models", {})
    before = list(log)
    connection.receive([ACP])
    connection.send_status("mcp", {})

    assert before == []
    assert log == [
        ("acp", "created", None),
        ("acp", "storage", {"state": "ready"}),
        ("acp", "models", {}),
        ("acp", ACP),
        ("acp", "mcp", {}),
    ]


def test_a_client_that_never_speaks_holds_a_bounded_number_of_statuses() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    for number in range(1000):
        connection.send_status("storage", {"number": number})
    connection.receive([MCP])

    numbers = [data["number"] for _, kind, data in log[1:-1] if kind == "storage"]
    assert numbers == list(range(1000 - MAX_HELD_STATUSES, 1000))


async def test_the_shutdown_and_a_new_database_reach_the_frontend() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    connection.receive([ACP])
    connection.reset()
    connection.refuse()
    await connection.idle()
    connection.abandon()

    assert log[2:] == [("acp", "reset"), ("acp", "refuse"), ("acp", "idle"), ("acp", "abandon")]
    assert connection.app == cast("Any", "the app of acp")


async def test_a_process_that_exits_before_the_first_message_refuses_it() -> None:
    log: list[Any] = []
    connection = connect(log)

    connection.begin(None)
    connection.reset()
    await connection.idle()
    connection.refuse()
    connection.receive([ACP])
    connection.abandon()

    assert log == [(NATIVE, "created", None), (NATIVE, "refuse"), (NATIVE, ACP), (NATIVE, "abandon")]


def test_the_program_speaks_three_dialects() -> None:
    built_in = FrontendRegistry()

    assert [each.name for each in BUILT_IN] == [NATIVE, "mcp", "acp"]
    assert (built_in.default.name, built_in.needs_first_message) == (NATIVE, True)
    assert built_in.find(NATIVE).load() is NativeFrontend


@pytest.mark.parametrize("name", ["", "ACP", "Native", "native ", "NATIVE"])
def test_an_unknown_frontend_is_a_mistake_of_the_program_that_names_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=f"there is no frontend {name!r}; there are: native"):
        load_frontend(FrontendRegistry(), name)


def test_two_frontends_of_one_name_are_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="two frontends are named 'native'"):
        FrontendRegistry([*BUILT_IN, *BUILT_IN])


def test_only_the_chosen_dialect_is_loaded() -> None:
    loaded: list[str] = []

    def load(name: str) -> FrontendEntry:
        def create(connection: FrontendConnection) -> Frontend:
            raise AssertionError("nothing connects")

        def note() -> Callable[[FrontendConnection], Frontend]:
            loaded.append(name)
            return create

        return FrontendEntry(name, note)

    frontends = FrontendRegistry([load(NATIVE), load("mcp")])
    load_frontend(frontends, "mcp")
    load_frontend(frontends, None)

    assert loaded == ["mcp", NATIVE]
