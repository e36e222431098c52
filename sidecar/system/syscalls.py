"""A seccomp filter for the sandbox: what no namespace isolates is refused.

No command can access the kernel's keyrings, where other programs of the same user store passwords and tickets. And
sockets are only of families that the sandbox's own network confines: others lead out of it, such as those to the host
of a virtual machine (vsock) or to Bluetooth devices. Builds the filter; bubblewrap installs it.
"""

from __future__ import annotations

import functools
import os
import struct
import sys

import msgspec


class _Calls(msgspec.Struct, frozen=True):
    """The numbers of an architecture: `add_key` to `keyctl`, which are consecutive, and `socket`. `socketcall` creates
    sockets too; its family is in memory, where no filter can read it.
    """

    architecture: int
    first_key: int
    last_key: int
    socket: int
    socketcall: int | None = None


_ARCHITECTURES = (
    _Calls(0xC000003E, 248, 250, 41),  # x86-64, with x32
    _Calls(0x40000003, 286, 288, 359, 102),  # i386
    _Calls(0xC00000B7, 217, 219, 198),  # arm64
    _Calls(0x40000028, 309, 311, 281),  # arm
    _Calls(0xC00000F3, 217, 219, 198),  # riscv64
)

FAMILIES = (1, 2, 10, 16, 38)
"""Unix, IPv4, IPv6, netlink, and the kernel's cryptography."""

_IO_URING = 425
"""`io_uring_setup`, on every architecture: a ring creates sockets and no filter sees it."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # the latter's low half, on little-endian machines
_ALLOW, _FORBIDDEN, _UNKNOWN_CALL, _UNKNOWN_FAMILY = 0x7FFF0000, 0x00050001, 0x00050026, 0x00050061
"""EPERM; ENOSYS and EAFNOSUPPORT, as if the kernel did not have it: programs then use something else."""
_NOT_X32 = 0xBFFFFFFF

_Step = tuple[int, int, int, int]


def build_filter() -> bytes:
    """Return the program, as classic BPF of the kernel."""
    steps: list[_Step] = []
    for calls in _ARCHITECTURES:
        rules = _rules(calls)
        # The number of a call means another call on another architecture, and a 64-bit kernel runs 32-bit programs.
        steps += [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, len(rules), calls.architecture), *rules]
    return b"".join(struct.pack("=HBBI", *step) for step in (*steps, (_RETURN, 0, 0, _ALLOW)))


def _rules(calls: _Calls) -> list[_Step]:
    """Return the steps for one architecture. A jump counts the steps that it skips."""
    return [
        (_LOAD, 0, 0, _NUMBER),
        # x32 programs make the same calls with one bit set.
        (_AND, 0, 0, _NOT_X32),
        (_AT_LEAST, 0, 2, calls.first_key),
        (_ABOVE, 1, 0, calls.last_key),
        (_RETURN, 0, 0, _FORBIDDEN),
        (_EQUAL, 0, 1, _IO_URING),
        (_RETURN, 0, 0, _UNKNOWN_CALL),
        *(_first_argument_among(calls.socketcall, range(2, 21)) if calls.socketcall else ()),
        *_first_argument_among(calls.socket, FAMILIES),
    ]


def _first_argument_among(call: int, allowed: range | tuple[int, ...]) -> list[_Step]:
    """Return the steps that refuse a call unless its first argument is one of these."""
    count = len(allowed)
    tests = [(_EQUAL, count - at, 0, value) for at, value in enumerate(allowed)]
    rest = [(_LOAD, 0, 0, _FIRST_ARGUMENT), *tests, (_RETURN, 0, 0, _UNKNOWN_FAMILY), (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(rest), call), *rest]


@functools.cache
def filter_path() -> str:
    """Return where a child of this process can read the filter; empty when there is no such path."""
    if sys.platform != "linux":
        return ""
    try:
        descriptor = os.memfd_create("sidecar-syscalls", os.MFD_CLOEXEC)
        os.write(descriptor, build_filter())
    except OSError:
        return ""
    # Never closed: it is needed for every command until the process ends.
    return f"/proc/{os.getpid()}/fd/{descriptor}"
