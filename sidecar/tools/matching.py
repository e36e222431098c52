"""The process that matches a model's regular expression where there is no ripgrep. Standard library only.

It gets the bytes of files on its input and says on its output which lines match; it opens nothing. A pattern that
blows up holds this process alone, which has limits of its own and is killed by who started it.

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

CPU_S = 20
"""Seconds of the processor, in case nobody is left to kill it."""

MEMORY = 512 * 1024 * 1024
"""Bytes: many times the largest file that is looked into."""


def main() -> None:
    _limit()
    source, out = sys.stdin.buffer, sys.stdout.buffer
    try:
        options = json.loads(source.readline())
        regex = re.compile(options["pattern"], re.IGNORECASE if options["ignore_case"] else 0)
        while header := source.readline():
            number, size = map(int, header.split())
            _match(regex, number, source.read(size), options["max_lines"], out)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        _say(out, {"error": str(error) or "it is too large"})


def _match(regex: re.Pattern[str], number: int, data: bytes, max_lines: int, out: BinaryIO) -> None:
    if b"\0" in data:
        return
    rows = data.removesuffix(b"\n").split(b"\n") if data else []
    matched = [
        at for at, row in enumerate(rows, 1) if regex.search(row.removesuffix(b"\r").decode(errors="replace"))
    ]
    if matched:
        _say(out, {"file": number, "count": len(matched), "lines": matched[:max_lines]})


def _say(out: BinaryIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def _limit() -> None:
    try:
        import resource
    except ImportError:
        return  # Windows has none; there the time limit of who started us is all
    for kind, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS does not limit memory this way
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
