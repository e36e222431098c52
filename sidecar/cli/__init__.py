"""The command line, except a plain `serve`: argv in, exit code out. Commands are clients of a sidecar.

The module of a command is imported only when it runs, so that `--version` and `--help` are fast.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module

from .errors import CommandFailed, error_message
from .parser import build_parser

SIGPIPE_EXIT = 128 + 13
INTERRUPT_EXIT = 128 + 2


def main(argv: list[str]) -> int:
    """Run a command; without one, `chat`. Errors become one message on stderr."""
    options = build_parser().parse_args(argv or ["chat"])
    try:
        code = _command(options)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _silence_stdout()
        return SIGPIPE_EXIT
    except KeyboardInterrupt:
        return INTERRUPT_EXIT
    except Exception as error:
        return _fail(error)


def _command(options: Namespace) -> Callable[[Namespace], int]:
    module, _, function = options.run.partition(":")
    command: Callable[[Namespace], int] = getattr(import_module(f".commands.{module}", __package__), function)
    return command


def _fail(error: Exception) -> int:
    """Report an error that the user can fix; any other is a bug and shows its traceback."""
    message = error_message(error)
    if message is None:
        raise error
    print(f"sidecar: {message}", file=sys.stderr)
    return error.code if isinstance(error, CommandFailed) else 1


def _silence_stdout() -> None:
    """The reader has closed the pipe; without this the interpreter would report an error when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
