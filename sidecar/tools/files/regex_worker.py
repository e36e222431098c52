"""The worker process that matches a regular expression of the model without ripgrep. Standard library only.

It reads the bytes of files from stdin and writes the matching lines to stdout; it opens no files. A pattern with
catastrophic backtracking blocks only this process, which has resource limits and is killed by its parent.

In: one line of JSON with `pattern`, `ignore_case` and `max_lines`; then for each file a line with its number and its
size, and its bytes. Out: for each file with matches a line of JSON with `file`, `count` and the first `lines`; or one
with an `error`.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import Any, BinaryIO

if sys.platform != "win32":
    import resource

CPU_S = 20
"""Seconds of CPU time, in case the parent has died and nobody kills it."""

MAX_MEMORY_BYTES = 512 * 1024 * 1024
"""Bytes of memory: many times the largest file that is searched."""


def main() -> None:
    _limit_resources()
    source, out = sys.stdin.buffer, sys.stdout.buffer
    try:
        options = json.loads(source.readline())
        regex = re.compile(options["pattern"], re.IGNORECASE if options["ignore_case"] else 0)
        while header := source.readline():
            number, size = map(int, header.split())
            _match(regex, number, source.read(size), options["max_lines"], out)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        _write_message(out, {"error": str(error) or "it is too large"})


def _match(regex: re.Pattern[str], number: int, data: bytes, max_lines: int, out: BinaryIO) -> None:
    if b"\0" in data:
        return
    rows = data.removesuffix(b"\n").split(b"\n") if data else []
    matched = [
        at for at, row in enumerate(rows, 1) if regex.search(row.removesuffix(b"\r").decode(errors="replace"))
    ]
    if matched:
        _write_message(out, {"file": number, "count": len(matched), "lines": matched[:max_lines]})


def _write_message(out: BinaryIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def _limit_resources() -> None:
    if sys.platform == "win32":
        return  # only the parent's time limit applies
    for kind, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS does not limit memory this way
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
