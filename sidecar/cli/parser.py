"""Which commands and options there are, and their help. Runs nothing and imports nothing heavy."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from sidecar import __version__

FRAMINGS = ("auto", "lines", "headers")
LOG_LEVELS = ("error", "warn", "info", "debug", "trace")

_EPILOG = """\
examples:
  sidecar                            chat in the terminal
  sidecar chat "What is a monad?"    one answer, for scripts
  sidecar chat --chat tab-7          go on with a chat
  sidecar chats                      which chats there are
  sidecar serve                      what a desktop app spawns: JSON-RPC on stdin and stdout
"""

_CHAT = """\
Chat with the model. In a terminal: a conversation; Ctrl-C cancels the answer, Ctrl-C or Ctrl-D at the
prompt leaves, /help lists the commands. With a question: one answer, as plain text when it goes into a file
or a pipe. With a piped stdin and no question: each line is a prompt, answered in turn in one chat. With
both, the piped text is put below the question.
"""

_CHAT_EXAMPLES = """\
examples:
  sidecar chat
  sidecar chat --chat thesis --project ~/thesis
  sidecar chat "Name three primes" > primes.txt
  git diff | sidecar chat "Review this change"
  sidecar chat < questions.txt
  sidecar chat "Hello" < /dev/null   in a script whose stdin stays open
"""

_CONFIG_EXAMPLES = """\
examples:
  sidecar config
  sidecar config set model scripted:demo.json
  sidecar config set session.max_steps 80
  sidecar config unset model
"""


def build_parser() -> ArgumentParser:
    parser = _Parser(
        prog="sidecar",
        description="The process that a chat app spawns to talk to a model, and a chat in the terminal.",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sidecar {__version__}")
    _add_common(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_chat, _chats, _show, _export, _import, _config, _doctor, _schema, _serve):
        add(commands)
    return parser


class _Parser(ArgumentParser):
    """Says how to get help with every error."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n  `{self.prog} --help` explains.\n")


def _add(commands: Any, name: str, run: str, help: str, **more: Any) -> ArgumentParser:
    more = {"description": help[0].upper() + help[1:] + ".", **more}
    parser: ArgumentParser = commands.add_parser(
        name, help=help, formatter_class=RawDescriptionHelpFormatter, **more
    )
    parser.set_defaults(run=run)
    return parser


def _add_common(parser: ArgumentParser) -> None:
    # SUPPRESS: a default given after the command must not overwrite what was given before it.
    parser.add_argument(
        "--data-dir", metavar="DIR", default=SUPPRESS, help="the folder of the database, or :memory:"
    )
    parser.add_argument("--config", metavar="FILE", default=SUPPRESS, help="a configuration file")


def _chat(commands: Any) -> None:
    help = "chat with the model in the terminal, or get one answer"
    parser = _add(commands, "chat", "talk:talk", help, description=_CHAT, epilog=_CHAT_EXAMPLES)
    parser.add_argument("question", nargs="?", help="ask this, print the answer and leave")
    parser.add_argument("--chat", metavar="ID", help="the chat to go on with; a new one by default")
    parser.add_argument("--model", metavar="M", help="the model that answers, as provider:model")
    parser.add_argument("--project", metavar="DIR", help="the folder that the chat is about")
    _add_common(parser)


def _chats(commands: Any) -> None:
    parser = _add(commands, "chats", "chats:list_chats", "list the chats, newest first")
    parser.add_argument("--archived", action="store_true", help="those that were archived")
    parser.add_argument("--query", metavar="WORDS", help="only chats whose title or text has these words")
    _add_common(parser)


def _show(commands: Any) -> None:
    parser = _add(commands, "show", "chats:show_chat", "print a chat")
    parser.add_argument("chat", metavar="CHAT", help="its id, or its session id as `sidecar chats` shows it")
    parser.add_argument("-n", "--turns", type=int, metavar="N", help="only the last N turns")
    _add_common(parser)


def _export(commands: Any) -> None:
    parser = _add(commands, "export", "transfer:export_chat", "write a chat as JSON Lines or Markdown")
    parser.add_argument("chat", metavar="CHAT", help="its id, or its session id")
    parser.add_argument(
        "--format", choices=("jsonl", "markdown"), default="jsonl", help="jsonl imports as it was"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of to stdout")
    _add_common(parser)


def _import(commands: Any) -> None:
    help = "make a chat from an export, or from plain turns"
    example = 'a plain turn is a line such as {"role":"user","text":"Hello"}'
    parser = _add(commands, "import", "transfer:import_chat", help, epilog=example)
    parser.add_argument("file", metavar="FILE", help="the file to read, or - for stdin")
    parser.add_argument("--chat", metavar="ID", help="the chat to make; by default the file's name")
    parser.add_argument("--append", action="store_true", help="add to a chat that has turns already")
    _add_common(parser)


def _config(commands: Any) -> None:
    help = "print every setting and where it comes from, or change one"
    parser = _add(commands, "config", "config:show", help, epilog=_CONFIG_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    change = _add(actions, "set", "config:set_value", "set a key in the user's (or the project's) file")
    change.add_argument("key", metavar="KEY", help="as `sidecar config` prints it")
    change.add_argument("value", metavar="VALUE", help="a TOML value; what is none counts as text")
    clear = _add(actions, "unset", "config:unset_value", "take a key out of the file")
    clear.add_argument("key", metavar="KEY", help="as `sidecar config` prints it")
    for each in (parser, change, clear):
        each.add_argument("--project", metavar="DIR", default=SUPPRESS, help="the project whose file counts")
        _add_common(each)


def _doctor(commands: Any) -> None:
    parser = _add(
        commands, "doctor", "doctor:check", "check the installation; exit code 1 when something fails"
    )
    parser.add_argument("--report", metavar="FILE", help="also write a zip for a bug report")
    _add_common(parser)


def _schema(commands: Any) -> None:
    _add_common(_add(commands, "schema", "schema:print_schema", "print the protocol as an OpenRPC document"))


def _serve(commands: Any) -> None:
    help = "serve an app on stdin and stdout; also what `sidecar` does without a terminal"
    parser = _add(commands, "serve", "serve:serve_options", help)
    _add_common(parser)
    parser.add_argument("--framing", choices=FRAMINGS, default="auto", help="how messages are told apart")
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="how much stderr tells")
    parser.add_argument("--chat-id", metavar="ID", help="stands in where a request names no chat")
