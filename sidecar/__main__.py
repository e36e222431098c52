"""The command `sidecar`. `serve` goes straight to the door; everything else is the command line's."""

from __future__ import annotations

import sys

from .system.choices import HELPER_FLAG, LOG_LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_FRONTENDS = {"serve": None, "mcp": "mcp", "acp": "acp"}
"""Commands that serve a client on stdin and stdout, and the dialect that each one speaks."""

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
    if argv[:1] == [HELPER_FLAG]:
        from .system.helper_programs import run_helper

        run_helper(argv[1:])
        sys.exit()
    if argv and argv[0] == "hook" and "--help" not in argv:
        from .adapters.hook_command import main as hook

        sys.exit(hook(argv[1:]))
    options = _plain_serve(argv)
    if options is None:
        from .cli import main as command_line

        sys.exit(command_line(argv))
    from .server.bootstrap import serve
    from .system.launch import ServeOptions

    serve(ServeOptions(**options))


def _plain_serve(argv: list[str]) -> dict[str, str] | None:
    """The options of a serving command when they need no explaining; argparse would delay the first answer."""
    if not argv or argv[0] not in _FRONTENDS:
        return None
    from .system.launch import FRAMINGS

    choices = {"framing": FRAMINGS, "log_level": LOG_LEVELS}
    frontend = _FRONTENDS[argv[0]]
    options: dict[str, str] = {"frontend": frontend} if frontend else {}
    words = iter(argv[1:])
    for word in words:
        flag, equals, value = word.partition("=")
        name = _FLAGS.get(flag)
        given = value if equals else next(words, None)
        if name is None or given is None or given.startswith("--"):
            return None
        if name in choices and given not in choices[name]:
            return None
        options[name] = given
    return options


def _is_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False


if __name__ == "__main__":
    main()
