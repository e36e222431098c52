"""A proxy with a fault: `twin.py FAULT COMMAND…` passes on a sidecar's frames and breaks a promise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

FrameLines = Iterator[bytes]


def lose_an_event(lines: FrameLines) -> FrameLines:
    for line in lines:
        if b'"turn.started"' not in line:
            yield line


def double_an_event(lines: FrameLines) -> FrameLines:
    for line in lines:
        yield line
        if b'"turn.started"' in line:
            yield line


def end_a_turn_twice(lines: FrameLines) -> FrameLines:
    for line in lines:
        yield line
        if b'"turn.ended"' in line:
            event = json.loads(line)
            event["params"]["seq"] += 1
            yield json.dumps(event).encode() + b"\n"


def alter_the_text(lines: FrameLines) -> FrameLines:
    for line in lines:
        yield line.replace(b"hello", b"jello") if b'"message.delta"' in line else line


def print_to_stdout(lines: FrameLines) -> FrameLines:
    yield b"debug: starting\n"
    yield from lines


def answer_late(lines: FrameLines) -> FrameLines:
    held: list[bytes] = []
    for line in lines:
        if b'"disposition"' in line:
            held.append(line)
        else:
            yield line
            if b'"turn.ended"' in line:
                yield from held


def answer_twice(lines: FrameLines) -> FrameLines:
    for line in lines:
        yield line
        if b'"disposition"' in line:
            yield line


def leave_a_child_behind(lines: FrameLines) -> FrameLines:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(["sleep", "30"], start_new_session=True, **quiet)  # type: ignore[call-overload]
    yield from lines


FAULTS: dict[str, Callable[[FrameLines], FrameLines]] = {
    fault.__name__: fault
    for fault in (
        lose_an_event,
        double_an_event,
        end_a_turn_twice,
        alter_the_text,
        print_to_stdout,
        answer_late,
        answer_twice,
        leave_a_child_behind,
    )
}


def main(fault: str, command: list[str]) -> int:
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as sidecar:
        assert sidecar.stdout
        broken = (
            FAULTS[fault](iter(sidecar.stdout.readline, b"")) if fault in FAULTS else iter(sidecar.stdout)
        )
        for line in broken:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        return sidecar.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
