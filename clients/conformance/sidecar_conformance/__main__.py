"""`sidecar-conformance`: test a program, or play a recorded conversation to a client."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .guarantees import FRONTENDS, TRANSCRIPTS
from .player import play
from .runner import run

_DESCRIPTION = """\
Test whether a program is a Sidecar:   sidecar-conformance -- path/to/sidecar serve
Play the sidecar of a transcript:      sidecar-conformance --play 01-hello-and-stream

The program must know the models `echo:` and `scripted:FILE` (SIDECAR_MODEL) and keep its data in SIDECAR_DATA_DIR.
Exit codes: 0 all passed, 1 something failed, 2 the command line is wrong.
"""


def main(words: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(words)
    if options.list:
        return _list(options.frontend)
    if options.play:
        path = TRANSCRIPTS / f"{options.play}.jsonl"
        if not path.is_file():
            parser.error(f"there is no transcript {options.play!r}; `--list` names them")
        return play(path, options.process, sys.stdin.buffer, sys.stdout.buffer)
    command = _command(parser, options.command)
    frontend = FRONTENDS[options.frontend]
    known = [guarantee.name for guarantee in frontend.guarantees]
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        parser.error(f"--only {unknown[0]}: {frontend.name} has {', '.join(known)}")
    return run(frontend, shlex.join(command), options.only or known, fail_fast=options.fail_fast)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sidecar-conformance",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="*", help="the program under test and its arguments, after --")
    parser.add_argument(
        "--frontend",
        choices=FRONTENDS,
        default="lines",
        help="lines and headers are framings of our own JSON-RPC; acp is for editors (default: lines)",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="test this guarantee; may be repeated"
    )
    parser.add_argument("--fail-fast", action="store_true", help="end at the first failure")
    parser.add_argument("--list", action="store_true", help="name the guarantees and the transcripts")
    parser.add_argument(
        "--play", metavar="TRANSCRIPT", help="be the sidecar of this transcript, on stdin and stdout"
    )
    parser.add_argument(
        "--process", type=int, default=1, metavar="N", help="with --play: its Nth process (default: 1)"
    )
    return parser


def _command(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """The command with an absolute program: each test runs it in a folder of its own."""
    if not words:
        parser.error("name the program under test: sidecar-conformance -- path/to/sidecar serve")
    program = shutil.which(words[0])
    if program is None:
        parser.error(f"cannot run {words[0]!r}: there is no such program")
    return [os.path.abspath(program), *(os.path.abspath(w) if Path(w).is_file() else w for w in words[1:])]


def _list(frontend: str) -> int:
    lines = [f"{guarantee.name:<12} {guarantee.promise}" for guarantee in FRONTENDS[frontend].guarantees]
    lines += ["", "Transcripts:", *(f"  {path.stem}" for path in sorted(TRANSCRIPTS.glob("*.jsonl")))]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
