"""Slash commands: prompts that the sidecar answers itself, without a model.

A command is found by its name in one table, which `commands/list` and `/help` show. Its answer is data for the app
and Markdown for people.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable

import msgspec

from ...model.chats import PromptOverrides
from ...model.content import Block
from ...model.events import NewEvent
from ...model.failures import Refused, invalid_param
from ...model.figures import statistics_report
from ...system.clock import now
from ...text.plural import counted
from ...text.suggest import did_you_mean
from ...workspace import git
from ..journal import event_factory
from ..journal.identity import ChatAddress
from ..sessions.arrivals import PromptReceipt
from ..sessions.chats import Chats
from ..sessions.session import Session
from . import branches, files, index_actions, patches, preview, purge_command, rules, snapshots
from .command_views import (
    CommandReply,
    added_sources_view,
    context_view,
    diff_view,
    files_view,
    markdown_table,
    patches_view,
    rewind_view,
    search_view,
    snapshot_view,
    snapshots_view,
    sources_view,
)
from .patches import PatchSelector
from .rules_view import rules_view
from .stats_view import statistics_markdown

MAX_NAME = 40
"""Characters of a word after a slash that may be a command."""

_PIN = re.compile(r"(?<!\S)--pin(?!\S)")

SEARCH_TOKENS = 800
MAX_LISTED = 50
"""Rows that a person reads of a search, or of a list."""


class CommandCall(msgspec.Struct, frozen=True):
    """A command as it was typed: its name, and the words after it."""

    name: str
    argument_text: str

    def words(self) -> list[str]:
        try:
            return shlex.split(self.argument_text)
        except ValueError as error:
            raise invalid_param(
                "text", f"arguments of /{self.name} with each quote closed ({error})"
            ) from error

    def only_argument(self, what: str) -> str:
        """The only argument; an unquoted path may contain spaces."""
        words = self.words()
        if not words:
            raise invalid_param("text", f"/{self.name} {what}")
        return words[0] if len(words) == 1 else self.argument_text.strip()


CommandHandler = Callable[[Chats, Session, CommandCall], Awaitable[CommandReply]]


class Command(msgspec.Struct, frozen=True):
    name: str
    arguments: str
    description: str
    execute: CommandHandler


def parse_command(text: str) -> CommandCall | str:
    """The command in a prompt, or the text to send: `//` is an escaped slash."""
    if text.startswith("//"):
        return text[1:]
    head, _, argument_text = text[1:].partition(" ")
    name = head.strip()
    first_line = name.partition("\n")[0]
    plain = first_line == name and 0 < len(name) <= MAX_NAME and "/" not in name
    if not text.startswith("/") or not plain or not name[0].isalpha():
        return text
    if name not in COMMANDS:
        raise _unknown_command(name)
    return CommandCall(name, argument_text.strip())


async def execute(chats: Chats, session: Session, prompt_id: str, call: CommandCall) -> PromptReceipt:
    """Run a command and journal its answer; a prompt id runs once."""
    known = await session.store.turns.prompt(session.chat.id, prompt_id)
    if known:
        return PromptReceipt("duplicate", known.turn_id or None, known.seq)
    reply = await COMMANDS[call.name].execute(chats, session, call)

    async def make() -> tuple[None, list[NewEvent]]:
        data = {"promptId": prompt_id, "command": call.name, "data": reply.data, "markdown": reply.markdown}
        return None, [NewEvent("command.result", data)]

    _, seq = await session.apply(make)
    if reply.then:
        await reply.then()
    return PromptReceipt("command", None, seq)


async def _open(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    text, flags = _PIN.subn(" ", call.argument_text)
    named = CommandCall(call.name, text.strip())
    words = [named.argument_text] if await files.is_file(session, named.argument_text) else named.words()
    if not words:
        raise invalid_param("text", "/open PATH or GLOB, and --pin to keep it open")
    changed = None
    for word in words:
        changed = await files.open_matching(session, *await _path_or_glob(session, word), flags > 0)
    assert changed is not None
    return files_view(changed)


async def _close(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    word = await _path(session, call)
    before = len(session.environment.files.files)
    path, glob = await _path_or_glob(session, word)
    changed = await files.close_matching(session, path, glob)
    if len(changed.files) == before:
        message = f"`text`: no open file matches {word!r}; /open:list lists the open files"
        raise Refused("not_found", message, params={"field": "text"})
    return files_view(changed)


async def _path(session: Session, call: CommandCall) -> str:
    """The only argument: a file of exactly this name, such as `it's.py`, or else words with quotes."""
    text = call.argument_text
    return text if await files.is_file(session, text) else call.only_argument("PATH")


async def _path_or_glob(session: Session, word: str) -> tuple[str | None, str | None]:
    """A word is a pattern if it looks like one and no file has that name, as in `app/[id]/page.tsx`."""
    if any(mark in word for mark in "*?[{") and not await files.is_file(session, word):
        return None, word
    return word, None


async def _pin(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return files_view(await files.pin_file(session, await _path(session, call)))


async def _unpin(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return files_view(await files.unpin_file(session, await _path(session, call)))


async def _list_open(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return files_view(await files.list_files(session))


async def _clear_open(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return files_view(await files.close_all(session))


async def _list_patches(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return patches_view(await patches.list_patches(session, PatchSelector()))


async def _show_patch(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return diff_view(await patches.show_patches(session, _patch_selector(call.only_argument("N or PATH"))))


async def _clear_patches(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    count, _ = await patches.clear_patches(session)
    return CommandReply({"cleared": count}, f"Removed {counted(count, 'patches')} from the list.")


async def _revert(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    changed = await patches.revert_patches(
        session, _patch_selector(call.only_argument("N or PATH")), dry_run=False
    )
    rows = [{"path": change.path, "status": change.status} for change in changed.files]
    return CommandReply({"files": rows, "ids": [patch.id for patch in changed.items]}, markdown_table(rows))


async def _diff(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    words = call.words()
    if set(words) - {"--staged"}:
        raise invalid_param("text", "/diff or /diff --staged")
    found = await git.diff(session.environment.require_workspace(), staged="--staged" in words)
    text = f"```\n{found.summary}\n```\n\n````diff\n{found.text}\n````" if found.text else "No changes."
    return CommandReply({"summary": found.summary, "diff": found.text, "truncated": found.truncated}, text)


async def _context(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    content = [Block(type="text", text=call.argument_text or " ")]
    manifest = await preview.preview_manifest(session, content, PromptOverrides(), None)
    return CommandReply(msgspec.to_builtins(manifest.without_text()), context_view(manifest))


async def _compact(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    if session.turn:
        raise event_factory.turn_in_progress()
    planned = await preview.plan_compaction(session)
    id = await preview.compact_chat(session, call.argument_text or None) if planned else None
    if planned is None or id is None:
        return CommandReply({"compactionId": None}, "There is nothing old enough to compact.")
    count, figures = (
        len(planned.oldest),
        f"{planned.before} tokens before, {planned.after} and the summary now",
    )
    return CommandReply(
        {"compactionId": id, "turns": count}, f"A summary replaces {counted(count, 'turns')}: {figures}."
    )


async def _rules(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    found = await rules.list_rules(chats, _address(session))
    return CommandReply({"items": msgspec.to_builtins(found)}, rules_view(found, now()))


async def _session(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    what, _, name = call.argument_text.partition(" ")
    restore = name.endswith(" --files")
    name = name.removesuffix(" --files").strip()
    if what == "save" and name:
        saved = await branches.save_checkpoint(session, name)
        return CommandReply({"name": saved.name, "head": saved.head}, f"Saved as **{saved.name}**.")
    if what == "load" and name:
        return rewind_view(await branches.load_checkpoint(session, name, restore=restore))
    if what in ("list", "") and not name:
        rows = [
            msgspec.to_builtins(saved) for saved in await session.store.patches.checkpoints(session.chat.id)
        ]
        return CommandReply(
            {"items": rows}, markdown_table([{"name": row["name"], "turn": row["head"]} for row in rows])
        )
    raise invalid_param("text", "/session save NAME, /session load NAME [--files], or /session list")


async def _snapshots(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    what, _, id = call.argument_text.partition(" ")
    if what in ("list", "") and not id:
        return snapshots_view(await snapshots.list_snapshots(session))
    if what == "show" and id:
        return snapshot_view(await snapshots.show_snapshot(session, id.strip()))
    if what == "restore" and id:
        restored = await snapshots.restore_snapshot(session, id.strip())
        shown = snapshot_view(restored.snapshot)
        data = {**shown.data, "opened": restored.opened, "missing": restored.missing}
        return CommandReply(data, f"This goes along with the next prompt, once.\n\n{shown.markdown}")
    raise invalid_param("text", "/snapshots, /snapshots show ID, or /snapshots restore ID")


async def _model(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    if call.argument_text:
        await session.configure({"model": call.argument_text})
    model = session.config.model
    return CommandReply({"model": model}, f"The model is `{model}`.")


async def _search(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    if not call.argument_text:
        raise invalid_param("text", "/search WORDS")
    wanted = index_actions.IndexQuery(
        [call.argument_text], "chat", None, None, None, "relevance", None, SEARCH_TOKENS
    )
    (found,) = await index_actions.search(chats, _address(session), wanted)
    return search_view(found)


async def _index(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    if call.argument_text:
        added = await index_actions.add(
            chats, _address(session), None, await _path(session, call), None, None
        )
        return added_sources_view(added.sources, added.skipped)
    page = await index_actions.list_sources(chats, _address(session), None, None, None, MAX_LISTED)
    return sources_view(page.sources)


async def _stats(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    scope = call.argument_text or "chat"
    if scope not in ("chat", "project", "all"):
        raise invalid_param("text", "/stats, /stats project or /stats all")
    project = session.chat.project_path
    if scope == "project" and project is None:
        raise invalid_param("text", "/stats or /stats all: this chat has no project")
    address = ChatAddress(project_path=project) if scope == "project" else _address(session)
    report = statistics_report(scope, await chats.statistics(scope, address))
    return CommandReply(msgspec.to_builtins(report), statistics_markdown(report))


async def _purge(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    return await purge_command.run_purge(chats, session, call.words())


async def _help(chats: Chats, session: Session, call: CommandCall) -> CommandReply:
    rows = [
        {"command": f"/{command.name} {command.arguments}".strip(), "what it does": command.description}
        for command in COMMANDS.values()
    ]
    return CommandReply({"items": rows}, markdown_table(rows))


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("open", "PATH|GLOB [--pin]", "Open files; --pin keeps them open.", _open),
        Command("open:list", "", "List the open files.", _list_open),
        Command("open:clear", "", "Close all files.", _clear_open),
        Command("close", "PATH|GLOB", "Close a file.", _close),
        Command("pin", "PATH", "Pin an open file, so that newer files do not replace it.", _pin),
        Command("unpin", "PATH", "Unpin a file, so that newer files may replace it.", _unpin),
        Command("patches:list", "", "List the patches of this chat, newest first.", _list_patches),
        Command("patches:show", "N|PATH", "Show the diff of a patch.", _show_patch),
        Command("patches:clear", "", "Clear the list of patches; nothing is reverted.", _clear_patches),
        Command("patches:revert", "N|PATH", "Revert a patch.", _revert),
        Command("diff", "[--staged]", "Show the git diff of the project.", _diff),
        Command(
            "session",
            "save|load|list [NAME] [--files]",
            "Save a checkpoint of the chat, go back to one (--files: files too), or list them.",
            _session,
        ),
        Command(
            "context",
            "[PROMPT]",
            "Show what would be sent to the model with a prompt, block by block.",
            _context,
        ),
        Command("compact", "[INSTRUCTIONS]", "Replace the oldest turns by a summary.", _compact),
        Command("rules", "", "List the instruction rules that apply here, and when they were used.", _rules),
        Command("search", "WORDS", "Search tool outputs, indexed files and pages.", _search),
        Command(
            "index", "[PATH]", "Index a file or folder; without one, list the sources of this chat.", _index
        ),
        Command(
            "snapshots",
            "[show|restore ID]",
            "List the snapshots of this chat's state, or show one; restore sends one with the next prompt.",
            _snapshots,
        ),
        Command("model", "[NAME]", "Show the model, or choose another.", _model),
        Command("stats", "[chat|project|all]", "Show figures of this chat, its project or all.", _stats),
        Command(
            "purge",
            "[chat|project|all] [WORD]",
            "Show what a purge would remove, and the word that confirms it.",
            _purge,
        ),
        Command("help", "", "List the commands.", _help),
    )
}


def _address(session: Session) -> ChatAddress:
    return ChatAddress(session_id=session.chat.key.session_id)


def _patch_selector(word: str) -> PatchSelector:
    return PatchSelector(number=int(word)) if word.isdecimal() and len(word) < 6 else PatchSelector(path=word)


def _unknown_command(name: str) -> Refused:
    near = did_you_mean(name, COMMANDS)
    remedy = f"did you mean /{near[0]}?" if near else "/help lists the commands"
    return Refused(
        "invalid_params",
        f"`text`: there is no command /{name}; {remedy}",
        params={"field": "text", "command": name, "nearest": near[0] if near else None},
        hint="Two slashes send text that begins with one",
    )
