"""The tools that show what Sidecar keeps, as Markdown for an agent."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast, get_args

import msgspec

from ...chat.actions import files, patches, purge_chats
from ...chat.actions.command_views import TableRow, markdown_table
from ...chat.actions.patches import PatchSelector
from ...chat.actions.purge_chats import PurgeTarget
from ...chat.actions.stats_view import statistics_markdown
from ...chat.journal.identity import ChatAddress
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model.chats import Chat, ChatQuery, MessageHit
from ...model.figures import PurgeCounts, statistics_report
from ...model.files import Patch
from ...text.plural import counted, counted_fields
from ...tools.base import ToolInput
from ..base import Host
from .messages import Schema
from .questions import AgentApp

MAX_CHATS = 20
"""Chats of a project whose files and patches are looked through, the newest first."""

MAX_ROWS = 50
MAX_HITS = 20
DEFAULT_HITS = 8
MAX_DIFF = 12_000
"""Characters of all diffs in one answer: about 3,000 tokens."""

_CONFIRM: Schema = {
    "type": "object",
    "properties": {"delete": {"type": "boolean", "title": "Delete it for good?"}},
    "required": ["delete"],
}


class ViewContext(msgspec.Struct, frozen=True):
    """What a view may use: the chats, the agent's own session, and the process."""

    chats: Chats
    session: Session
    host: Host
    app: AgentApp

    @property
    def project(self) -> str | None:
        return self.session.chat.project_path


class ToolFailed(Exception):
    """The call cannot be answered; the message says what to change."""


ToolView = Callable[[ViewContext, ToolInput], Awaitable[str]]


async def show_open_files(context: ViewContext, arguments: ToolInput) -> str:
    rows = []
    for chat in await _project_chats(context):
        session = await _session_of(context.chats, chat)
        for viewed in (await files.list_files(session)).files:
            rows.append(
                {
                    "file": viewed.file.path,
                    "pinned": "yes" if viewed.file.pinned else "",
                    "state": viewed.state,
                    "chat": chat.title or chat.key.value,
                }
            )
    return markdown_table(rows[:MAX_ROWS]) if rows else "No files are open in the chats of this project."


async def show_patches(context: ViewContext, arguments: ToolInput) -> str:
    limit = _limit(arguments, MAX_ROWS, 20)
    id, path = _optional_text(arguments, "id"), _optional_text(arguments, "path")
    found: list[tuple[Chat, Patch]] = []
    for chat in await _project_chats(context):
        session = await _session_of(context.chats, chat)
        if id is None and path is None:
            listed = await patches.list_patches(session, PatchSelector())
        else:
            listed = [
                patch
                for patch in await patches.list_patches(session, PatchSelector())
                if patch.id == id or patch.file_path == path
            ]
            if listed:
                listed = await patches.show_patches(session, PatchSelector(id=id, path=path))
        found += [(chat, patch) for patch in listed]
    found.sort(key=lambda one: one[1].ts, reverse=True)
    if not found:
        return (
            "No changes are recorded for this." if id or path else "No changes are recorded in this project."
        )
    if id is not None or path is not None:
        return _diffs([patch for _, patch in found[:limit]])
    return markdown_table([_patch_row(chat, patch) for chat, patch in found[:limit]])


async def search_chats(context: ViewContext, arguments: ToolInput) -> str:
    query = _optional_text(arguments, "query")
    if query is None:
        raise ToolFailed("`query` must be some words.")
    scope = _choice(arguments, "scope", ("project", "all"), "project")
    limit = _limit(arguments, MAX_HITS, DEFAULT_HITS)
    wanted = ChatQuery(query=query, project_path=context.project if scope == "project" else None, limit=limit)
    hits, _ = await context.chats.search(wanted)
    if not hits:
        return "Nothing was said with these words" + (
            ' in this project; try scope "all" or other words.'
            if scope == "project"
            else "; try other words."
        )
    return "\n\n".join(map(_hit, hits))


async def show_statistics(context: ViewContext, arguments: ToolInput) -> str:
    scope = _choice(arguments, "scope", ("chat", "project", "all"), "project")
    address = (
        ChatAddress(project_path=context.project) if scope == "project" else _address(context.session.chat)
    )
    found = await context.chats.statistics(scope, address)
    return statistics_markdown(statistics_report(scope, found))


async def examine(context: ViewContext, arguments: ToolInput) -> str:
    checks = await context.host.system.checks()
    return "\n".join(
        f"- {check.status} **{check.name}**: {check.message}" + (f" ({check.action})" if check.action else "")
        for check in checks
    )


async def purge(context: ViewContext, arguments: ToolInput) -> str:
    """Count what would be deleted; delete it after a confirmation by the user or the argument."""
    scope = _choice(arguments, "scope", get_args(purge_chats.PurgeScope), None)
    target = await _purge_target(context, cast("purge_chats.PurgeScope", scope))
    counts = _counts(await purge_chats.count_purge(context.chats, target))
    confirmed = arguments.get("confirm") is True
    if context.app.can("input"):
        question = (
            f"Delete all that Sidecar keeps for {_scope_words(scope)}: {counts}? It does not come back."
        )
        answer = await context.app.confirm(question, _CONFIRM)
        confirmed = answer.get("delete") is True
        if not confirmed:
            return "Nothing was deleted: the user declined."
    if not confirmed:
        return f"This would delete {counts}. It does not come back. Call again with confirm: true to do it."
    done = await purge_chats.purge(context.chats, target)
    left = (
        f" As another process writes to them, {counted(len(done.left), 'chats')} stay." if done.left else ""
    )
    return f"Deleted {_counts(done.removed)}.{left}"


VIEWS: Mapping[str, ToolView] = {
    "open_files": show_open_files,
    "patches": show_patches,
    "search_chats": search_chats,
    "stats": show_statistics,
    "doctor": examine,
    "purge": purge,
}


async def _purge_target(context: ViewContext, scope: purge_chats.PurgeScope) -> PurgeTarget:
    if scope == "chat":
        return purge_chats.chat_target(context.session)
    project = context.project if scope == "project" else None
    return await purge_chats.purge_target(context.chats, scope, ChatAddress(project_path=project))


async def _project_chats(context: ViewContext) -> list[Chat]:
    page, _ = await context.chats.page(ChatQuery(project_path=context.project, limit=MAX_CHATS))
    return page


async def _session_of(chats: Chats, chat: Chat) -> Session:
    session = await chats.existing_session(_address(chat))
    await session.refresh_unless_owner()
    return session


def _address(chat: Chat) -> ChatAddress:
    return ChatAddress(session_id=chat.key.session_id)


def _patch_row(chat: Chat, patch: Patch) -> TableRow:
    return {
        "id": patch.id,
        "file": patch.file_path,
        "change": patch.summary,
        "status": patch.status,
        "when": _when(patch.ts),
        "chat": chat.title or chat.key.value,
    }


def _diffs(found: Sequence[Patch]) -> str:
    shown: list[str] = []
    left = MAX_DIFF
    for patch in found:
        diff = patch.unified_diff or ""
        if len(diff) > left:
            shown.append(f"… {len(found) - len(shown)} more diffs do not fit; ask for one by its id.")
            break
        left -= len(diff)
        shown.append(f"**{patch.file_path}** ({patch.summary}, {patch.status})\n\n````diff\n{diff}\n````")
    return "\n\n".join(shown)


def _hit(hit: MessageHit) -> str:
    chat = hit.chat
    name = chat.title or chat.key.value
    return f"**{name}**, {_when(chat.last_activity)} (`sidecar://chat/{chat.key.session_id}`)\n{hit.snippet}"


def _counts(removed: PurgeCounts) -> str:
    return counted_fields(removed, ("chats", "turns", "messages", "patches", "sources", "pages", "blobs"))


def _scope_words(scope: str) -> str:
    return {"chat": "this session", "project": "this project", "all": "all projects"}[scope]


def _when(ts: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ts / 1000))


def _optional_text(arguments: ToolInput, name: str) -> str | None:
    value = arguments.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise ToolFailed(f"`{name}` must be text.")
    return value


def _choice(arguments: ToolInput, name: str, allowed: Sequence[str], default: str | None) -> str:
    value = arguments.get(name, default)
    if value not in allowed:
        raise ToolFailed(f"`{name}` must be one of {', '.join(allowed)}.")
    return str(value)


def _limit(arguments: ToolInput, most: int, default: int) -> int:
    value = arguments.get("limit", default)
    if type(value) is not int or value < 1:
        raise ToolFailed("`limit` must be a whole number from 1.")
    return min(value, most)
