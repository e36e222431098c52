"""The command `sidecar`. `serve` goes straight to the door; everything else is the command line's."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_FLAGS = {
    "--data-dir": "data_dir",
    "--config": "config",
    "--framing": "framing",
    "--log-level": "log_level",
    "--chat-id": "chat_id",
}


def main() -> NoReturn:
    argv = sys.argv[1:]
    if not argv and not _is_terminal():
        argv = ["serve"]
    options = _plain_serve(argv)
    if options is None:
        from .cli import main as command_line

        sys.exit(command_line(argv))
    from .door import serve
    from .system.launch import ServeOptions

    serve(ServeOptions(**options))


def _plain_serve(argv: list[str]) -> dict[str, str] | None:
    """The options of `serve` when they need no explaining; argparse is too slow for the way to the door."""
    if not argv or argv[0] != "serve":
        return None
    options: dict[str, str] = {}
    words = iter(argv[1:])
    for word in words:
        flag, equals, value = word.partition("=")
        name = _FLAGS.get(flag)
        given = value if equals else next(words, None)
        if name is None or given is None or given.startswith("--"):
            return None
        if name in ("framing", "log_level") and given not in _CHOICES[name]:
            return None
        options[name] = given
    return options


_CHOICES = {
    "framing": ("auto", "lines", "headers"),
    "log_level": ("error", "warn", "info", "debug", "trace"),
}


def _is_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False


if __name__ == "__main__":
    main()
