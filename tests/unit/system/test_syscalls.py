"""The kernel's keyrings, which hold secrets of the user's other programs, and sockets that lead out of any network
namespace are out of reach in the sandbox.
"""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.system import sandbox
from sidecar.system.syscalls import FAMILIES, build_filter
from tests.support.patience import PATIENCE_S
from tests.unit.system.sandboxes import run_planned

NUMBERS = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}
USER, SESSION = -4, -3
CALL = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.syscall({}), ctypes.get_errno())"
REFUSED = "-1 1\n"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in NUMBERS,
    reason="numbers of system calls are not known",
)


def needed_box() -> sandbox.Sandbox:
    box = sandbox.detect()
    if box is None or not box.syscalls:
        pytest.skip("bubblewrap with a filter does not work here")
    return box


def ask(words: str, project: Path, *, boxed: bool) -> str:
    argv = [sys.executable, "-c", CALL.format(words)]
    if boxed:
        box = needed_box()
        return run_planned(lambda: box.wrap(argv, str(project), [], [], str(project)), project).stdout
    return subprocess.run(
        argv, cwd=project, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    ).stdout


@pytest.fixture
def key() -> Iterator[str]:
    """A key in the user's keyring, by its number."""
    add, _, control = NUMBERS[platform.machine()]
    here = Path("/")
    said = ask(f"{add}, b'user', b'sidecar-test', b'canary', 6, {USER}", here, boxed=False)
    if said.startswith("-1"):
        pytest.skip("the system keeps no keyrings")
    yield said.split()[0]
    ask(f"{control}, 9, {said.split()[0]}, {USER}", here, boxed=False)


def test_a_key_of_the_user_cannot_be_found_or_read(key: str, tmp_path: Path) -> None:
    _, _, control = NUMBERS[platform.machine()]
    for words in (f"{control}, 10, {USER}, b'user', b'sidecar-test', 0", f"{control}, 11, {key}, 0, 0"):
        assert not ask(words, tmp_path, boxed=False).startswith("-1"), "so the call is one that works"
        assert ask(words, tmp_path, boxed=True) == REFUSED


@pytest.mark.parametrize("place", [USER, SESSION, -1, -5])
def test_no_keyring_takes_a_key(tmp_path: Path, place: int) -> None:
    add, request, _ = NUMBERS[platform.machine()]
    assert ask(f"{add}, b'user', b'x', b'y', 1, {place}", tmp_path, boxed=True) == REFUSED
    assert ask(f"{request}, b'user', b'x', 0, {place}", tmp_path, boxed=True) == REFUSED


def test_other_calls_go_through(tmp_path: Path) -> None:
    assert ask("39 if l.getpid() > 0 else 0", tmp_path, boxed=True) != REFUSED


def test_the_filter_is_whole() -> None:
    assert len(build_filter()) % 8 == 0


VSOCK, BLUETOOTH, TIPC, RDS, QIPCRTR, PACKET, XDP = 40, 31, 30, 21, 42, 17, 44
MADE = "import socket; print(socket.socket({}, {}).family)"


def made(family: int, kind: str, project: Path) -> str:
    argv = [sys.executable, "-c", MADE.format(family, f"socket.{kind}")]
    box = needed_box()
    done = run_planned(lambda: box.wrap(argv, str(project), [], [], str(project)), project)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize("family", [VSOCK, BLUETOOTH, TIPC, RDS, QIPCRTR, PACKET, XDP])
def test_no_socket_leads_out_of_the_network_of_the_sandbox(family: int, tmp_path: Path) -> None:
    assert "Address family not supported" in made(family, "SOCK_DGRAM", tmp_path)


@pytest.mark.parametrize("family", [1, 2, 10, 16])
def test_sockets_within_the_sandbox_are_made(family: int, tmp_path: Path) -> None:
    assert str(family) in made(family, "SOCK_RAW" if family == 16 else "SOCK_STREAM", tmp_path)


def test_no_ring_does_what_the_filter_refuses(tmp_path: Path) -> None:
    assert ask("425, 4, 0", tmp_path, boxed=True) == "-1 38\n"


def verdict(architecture: int, number: int, argument: int) -> int:
    """What the filter returns for a call, as the kernel runs it."""
    program = list(struct.iter_unpack("=HBBI", build_filter()))
    data = struct.pack("=IIQQ", number, architecture, 0, argument)
    at, value = 0, 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x25: value > operand}[code]
            at += yes if holds else no


ALLOW, FORBIDDEN, UNKNOWN_CALL, UNKNOWN_FAMILY = 0x7FFF0000, 0x00050001, 0x00050026, 0x00050061
X32 = 0x40000000


@pytest.mark.parametrize(
    ("architecture", "key", "socket"),
    [
        (0xC000003E, 249, 41),
        (0xC000003E, 249 | X32, 41 | X32),
        (0x40000003, 287, 359),
        (0xC00000B7, 218, 198),
        (0x40000028, 310, 281),
        (0xC00000F3, 218, 198),
    ],
)
def test_every_architecture_is_filtered(architecture: int, key: int, socket: int) -> None:
    assert [verdict(architecture, key + step, 0) for step in (-2, -1, 0, 1, 2)] == [
        ALLOW,
        *[FORBIDDEN] * 3,
        ALLOW,
    ]
    assert verdict(architecture, 425, 1) == UNKNOWN_CALL
    families = {family: verdict(architecture, socket, family) for family in range(64)}
    assert {family for family, said in families.items() if said == ALLOW} == set(FAMILIES)
    assert set(families.values()) == {ALLOW, UNKNOWN_FAMILY}
    assert verdict(architecture, socket + 1, VSOCK) == ALLOW


def test_a_multiplexed_call_makes_no_socket() -> None:
    """The family is in memory there: a program that is emulated gets none at all, and can still use what it has."""
    assert [verdict(0x40000003, 102, call) for call in (1, 3, 8, 20)] == [UNKNOWN_FAMILY, *[ALLOW] * 3]
