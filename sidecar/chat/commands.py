"""Slash commands: what a person types into a prompt that the sidecar answers itself, without a model.

A command is found by its name in one table, which `commands/list` and `/help` show. Its answer is data for the app
and Markdown for people.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ..model.content import Block
from ..model.events import NewEvent
from ..model.failures import Refused, invalid
from ..workspace import git
from . import asking, branches, facts, files, patches, preview, shelves
from .arrivals import Sent
from .chats import Chats
from .command_views import (
    added_view,
    as_table,
    context_view,
    diff_view,
    files_view,
    patches_view,
    rewound_view,
    search_view,
    snapshot_view,
    snapshots_view,
    sources_view,
)
from .identity import Address
from .patches import Chosen
from .session import Session

MAX_NAME = 40
"""Characters of a word behind a slash that may be meant as a command."""


SEARCH_HITS = 8
SEARCH_TOKENS = 800
LISTED = 50
"""What a person reads of a search, and of a list."""


class Reply(msgspec.Struct, frozen=True):
    """`then` is done once the answer is kept: what would not leave the chat there to keep it in."""

    data: dict[str, Any]
    markdown: str
    then: Callable[[], Awaitable[None]] | None = None


class Asked(msgspec.Struct, frozen=True):
    """A command as it was typed: its name, and the words behind it."""

    name: str
    rest: str

    def words(self) -> list[str]:
        try:
            return shlex.split(self.rest)
        except ValueError as error:
            raise invalid("text", f"words with closed quotes behind /{self.name} ({error})") from error

    def one(self, what: str) -> str:
        """The only word behind the name; an unquoted path may have spaces."""
        words = self.words()
        if not words:
            raise invalid("text", f"/{self.name} {what}")
        return words[0] if len(words) == 1 else self.rest.strip()


Run = Callable[[Chats, Session, Asked], Awaitable[Reply]]


class Command(msgspec.Struct, frozen=True):
    name: str
    arguments: str
    description: str
    run: Run


def read(text: str) -> Asked | str:
    """The command that a prompt is, or the text that it sends: `//` stands for a slash that is meant."""
    if text.startswith("//"):
        return text[1:]
    head, _, rest = text[1:].partition(" ")
    name = head.strip()
    first_line = name.partition("\n")[0]
    plain = first_line == name and 0 < len(name) <= MAX_NAME and "/" not in name
    if not text.startswith("/") or not plain or not name[0].isalpha():
        return text
    if name not in COMMANDS:
        raise _unknown(name)
    return Asked(name, rest.strip())


async def run(chats: Chats, session: Session, prompt_id: str, asked: Asked) -> Sent:
    """Carry out a command and journal its answer; a prompt id runs once."""
    known = await session.store.prompt(session.chat.id, prompt_id)
    if known:
        return Sent("duplicate", known.turn_id or None, known.seq)
    reply = await COMMANDS[asked.name].run(chats, session, asked)

    async def make() -> tuple[None, list[NewEvent]]:
        data = {"promptId": prompt_id, "command": asked.name, "data": reply.data, "markdown": reply.markdown}
        return None, [NewEvent("command.result", data)]

    _, seq = await session.apply(make)
    if reply.then:
        await reply.then()
    return Sent("command", None, seq)


async def _open(chats: Chats, session: Session, asked: Asked) -> Reply:
    words = asked.words()
    pinned = "--pin" in words
    named = [word for word in words if word != "--pin"]
    if not named:
        raise invalid("text", "/open PATH or GLOB, and --pin to keep it in view")
    changed = None
    for word in named:
        glob = word if any(mark in word for mark in "*?[{") else None
        changed = await files.opened(session, None if glob else word, glob, pinned)
    assert changed is not None
    return Reply(*files_view(changed))


async def _close(chats: Chats, session: Session, asked: Asked) -> Reply:
    word = asked.one("PATH")
    glob = word if any(mark in word for mark in "*?[{") else None
    return Reply(*files_view(await files.closed(session, None if glob else word, glob)))


async def _pin(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*files_view(await files.pinned(session, asked.one("PATH"))))


async def _unpin(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*files_view(await files.unpinned(session, asked.one("PATH"))))


async def _list_open(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*files_view(await files.listed(session)))


async def _clear_open(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*files_view(await files.cleared(session)))


async def _list_patches(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*patches_view(await patches.listed(session, Chosen())))


async def _show_patch(chats: Chats, session: Session, asked: Asked) -> Reply:
    return Reply(*diff_view(await patches.shown(session, _chosen(asked.one("N or PATH")))))


async def _clear_patches(chats: Chats, session: Session, asked: Asked) -> Reply:
    count, _ = await patches.cleared(session)
    return Reply({"cleared": count}, f"{count} patches left the list.")


async def _revert(chats: Chats, session: Session, asked: Asked) -> Reply:
    changed = await patches.reverted(session, _chosen(asked.one("N or PATH")), dry_run=False)
    rows = [{"path": change.path, "status": change.status} for change in changed.files]
    return Reply({"files": rows, "ids": [patch.id for patch in changed.items]}, as_table(rows))


async def _diff(chats: Chats, session: Session, asked: Asked) -> Reply:
    words = asked.words()
    if set(words) - {"--staged"}:
        raise invalid("text", "/diff or /diff --staged")
    found = await git.diff(session.desk.needed_workspace(), staged="--staged" in words)
    text = f"```\n{found.summary}\n```\n\n````diff\n{found.text}\n````" if found.text else "No changes."
    return Reply({"summary": found.summary, "diff": found.text, "truncated": found.truncated}, text)


async def _context(chats: Chats, session: Session, asked: Asked) -> Reply:
    content = [Block(type="text", text=asked.rest or " ")]
    manifest = asking.without_text(await preview.manifest(session, content, {}, None))
    return Reply(manifest, context_view(manifest))


async def _compact(chats: Chats, session: Session, asked: Asked) -> Reply:
    if session.turn:
        raise facts.busy()
    planned = await preview.planned(session)
    id = await preview.compact(session, asked.rest or None) if planned else None
    if planned is None or id is None:
        return Reply({"compactionId": None}, "There is nothing old enough to compact.")
    count, figures = (
        len(planned.oldest),
        f"{planned.before} tokens before, {planned.after} and the summary now",
    )
    return Reply({"compactionId": id, "turns": count}, f"A summary stands for {count} turns: {figures}.")


async def _rules(chats: Chats, session: Session, asked: Asked) -> Reply:
    from . import instructions

    found = await instructions.listed(chats, _address(session))
    rows = [
        {"rule": rule.rule_path, "applies": rule.applies, "tokens": rule.tokens, "used": rule.load_count}
        | {"": rule.problem or ""}
        for rule in found
    ]
    return Reply({"items": msgspec.to_builtins(found)}, as_table(rows) if rows else "No instruction rules.")


async def _session(chats: Chats, session: Session, asked: Asked) -> Reply:
    what, _, name = asked.rest.partition(" ")
    restore = name.endswith(" --files")
    name = name.removesuffix(" --files").strip()
    if what == "save" and name:
        saved = await branches.save(session, name)
        return Reply({"name": saved.name, "head": saved.head}, f"Saved as **{saved.name}**.")
    if what == "load" and name:
        return Reply(*rewound_view(await branches.load(session, name, restore=restore)))
    if what in ("list", "") and not name:
        rows = [msgspec.to_builtins(saved) for saved in await session.store.checkpoints(session.chat.id)]
        return Reply({"items": rows}, as_table([{"name": row["name"], "turn": row["head"]} for row in rows]))
    raise invalid("text", "/session save NAME, /session load NAME [--files], or /session list")


async def _snapshots(chats: Chats, session: Session, asked: Asked) -> Reply:
    from . import snapshots

    what, _, id = asked.rest.partition(" ")
    if what in ("list", "") and not id:
        return Reply(*snapshots_view(await snapshots.listed(session)))
    if what == "show" and id:
        return Reply(*snapshot_view(await snapshots.shown(session, id.strip())))
    if what == "restore" and id:
        restored = await snapshots.restored(session, id.strip())
        data, text = snapshot_view(restored.snapshot)
        files = {"opened": restored.opened, "missing": restored.missing}
        return Reply({**data, **files}, f"This goes along with the next prompt, once.\n\n{text}")
    raise invalid("text", "/snapshots, /snapshots show ID, or /snapshots restore ID")


async def _model(chats: Chats, session: Session, asked: Asked) -> Reply:
    if asked.rest:
        await session.configure({"model": asked.rest})
    model = session.config["model"]
    return Reply({"model": model}, f"The model is `{model}`.")


async def _search(chats: Chats, session: Session, asked: Asked) -> Reply:
    if not asked.rest:
        raise invalid("text", "/search WORDS")
    wanted = shelves.Asked([asked.rest], "chat", None, None, None, "relevance", SEARCH_HITS, SEARCH_TOKENS)
    if session.chat.project_path:
        wanted = msgspec.structs.replace(wanted, scope="project")
    (found,) = await shelves.search(chats, _address(session), wanted)
    return Reply(*search_view(found))


async def _index(chats: Chats, session: Session, asked: Asked) -> Reply:
    if asked.rest:
        added = await shelves.add(chats, _address(session), None, asked.one("PATH"), None, None)
        return Reply(*added_view(added.sources, added.skipped))
    page = await shelves.listed(chats, _address(session), None, None, None, LISTED)
    return Reply(*sources_view(page.sources))


async def _stats(chats: Chats, session: Session, asked: Asked) -> Reply:
    from ..model.figures import told
    from .stats_view import drawn

    scope = asked.rest or "chat"
    if scope not in ("chat", "project", "all"):
        raise invalid("text", "/stats, /stats project or /stats all")
    project = session.chat.project_path
    if scope == "project" and project is None:
        raise invalid("text", "/stats or /stats all: this chat has no project")
    address = Address(project_path=project) if scope == "project" else _address(session)
    data = told(scope, await chats.statistics(scope, address))
    return Reply(data, drawn(data))


async def _purge(chats: Chats, session: Session, asked: Asked) -> Reply:
    from . import purge_command

    data, markdown, then = await purge_command.run(chats, session, asked.words())
    return Reply(data, markdown, then)


async def _help(chats: Chats, session: Session, asked: Asked) -> Reply:
    rows = [
        {"command": f"/{command.name} {command.arguments}".strip(), "what it does": command.description}
        for command in COMMANDS.values()
    ]
    return Reply({"items": rows}, as_table(rows))


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("open", "PATH|GLOB [--pin]", "Bring files into view; --pin keeps them there.", _open),
        Command("open:list", "", "The files in view.", _list_open),
        Command("open:clear", "", "Take all files out of view.", _clear_open),
        Command("close", "PATH|GLOB", "Take a file out of view.", _close),
        Command("pin", "PATH", "Keep a file in view.", _pin),
        Command("unpin", "PATH", "Let newer files push it out again.", _unpin),
        Command("patches:list", "", "What tools changed in this chat, newest first.", _list_patches),
        Command("patches:show", "N|PATH", "The diff of a change.", _show_patch),
        Command("patches:clear", "", "Empty the list; nothing is undone.", _clear_patches),
        Command("patches:revert", "N|PATH", "Undo a change.", _revert),
        Command("diff", "[--staged]", "What git sees as changed in the project.", _diff),
        Command(
            "session",
            "save|load|list [NAME] [--files]",
            "Name this place of the chat, go back to one (--files: files too), or list them.",
            _session,
        ),
        Command(
            "context", "[PROMPT]", "What the model would be sent with a prompt, block by block.", _context
        ),
        Command("compact", "[INSTRUCTIONS]", "Let a summary stand for the oldest turns.", _compact),
        Command("rules", "", "The instruction files that hold here, and how fresh they are.", _rules),
        Command("search", "WORDS", "Look up tool outputs, indexed files and pages by words.", _search),
        Command("index", "[PATH]", "Index a file or folder; without one, what is kept of this chat.", _index),
        Command(
            "snapshots",
            "[show|restore ID]",
            "What this chat has come to, now and when it was kept; restore sends one along with the next prompt.",
            _snapshots,
        ),
        Command("model", "[NAME]", "Which model answers, or choose another.", _model),
        Command("stats", "[chat|project|all]", "Figures of this chat, its project or all.", _stats),
        Command(
            "purge",
            "[chat|project|all] [WORD]",
            "What a purge would remove, and the word to type behind it that does it.",
            _purge,
        ),
        Command("help", "", "This list.", _help),
    )
}


def _address(session: Session) -> Address:
    return Address(session_id=session.chat.key.session_id)


def _chosen(word: str) -> Chosen:
    return Chosen(number=int(word)) if word.isdecimal() and len(word) < 6 else Chosen(path=word)


def _unknown(name: str) -> Refused:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    remedy = f"did you mean /{near[0]}?" if near else "/help lists the commands"
    return Refused(
        "invalid_params",
        f"`text`: there is no command /{name}; {remedy}",
        params={"field": "text", "command": name, "nearest": near[0] if near else None},
        hint="Two slashes send text that begins with one",
    )
