"""`/purge`: shows what would be removed and which word confirms it; with that word, removes it.

The word contains the counts, so that one typed out of habit, or for an earlier state, does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.failures import Refused, invalid_param
from ...model.figures import SHOWN_COUNTS, PurgeCounts
from ...text.plural import counted, counted_fields
from ..journal.identity import ChatAddress
from ..sessions.chats import Chats
from ..sessions.session import Session
from . import purge_chats
from .command_views import CommandReply
from .housekeeping import removed_counts
from .purge_chats import PurgeResult, PurgeScope, PurgeTarget

_SCOPE_NAMES = {"chat": "this chat", "project": "this project's chats and data", "all": "all chats and data"}


async def run_purge(chats: Chats, session: Session, words: Sequence[str]) -> CommandReply:
    """The answer, and what runs once the answer is stored: this chat is purged last."""
    scope, typed = _parse_words(words)
    wanted = await _target(chats, session, scope)
    planned = await purge_chats.count_purge(chats, wanted)
    word = _confirmation(scope, planned)
    data = {"scope": scope, "word": word}
    if typed is None:
        how = f"It does not come back. To do it, type `/purge {scope} {word}`."
        return CommandReply(
            {**data, "removed": removed_counts(planned), "dryRun": True},
            f"This would remove {_SCOPE_NAMES[scope]}: {_counts(planned)}.\n\n{how}",
        )
    if typed != word:
        raise Refused(
            "invalid_params",
            f"`text`: the word for it is {word}, as it would remove {_counts(planned)}",
            params={"field": "text", "word": word},
        )
    others = msgspec.structs.replace(wanted, chats=[id for id in wanted.chats if id != session.chat.id])
    done = await purge_chats.purge(chats, others) if scope != "chat" else None
    mine = PurgeTarget("chat", [session.chat.id])

    async def then() -> None:
        await purge_chats.purge(chats, mine)

    own = await purge_chats.count_purge(chats, mine)
    removed = own.plus(done.removed) if done else own
    left = [one.chat.key.session_id for one in done.left] if done else []
    return CommandReply(
        {**data, "removed": removed_counts(removed), "left": left}, _message(scope, removed, done), then
    )


def _parse_words(words: Sequence[str]) -> tuple[PurgeScope, str | None]:
    scope = words[0] if words else "chat"
    if scope not in ("chat", "project", "all") or len(words) > 2:
        raise invalid_param(
            "text", "/purge, /purge chat, /purge project or /purge all, and then the word that it names"
        )
    return scope, words[1] if len(words) > 1 else None  # type: ignore[return-value]


async def _target(chats: Chats, session: Session, scope: PurgeScope) -> PurgeTarget:
    if scope == "chat":
        return PurgeTarget("chat", [session.chat.id])
    project = session.chat.project_path if scope == "project" else None
    if scope == "project" and project is None:
        raise invalid_param("text", "/purge or /purge all: this chat has no project")
    return await purge_chats.purge_target(chats, scope, ChatAddress(project_path=project))


def _confirmation(scope: PurgeScope, planned: PurgeCounts) -> str:
    what = counted(planned.turns, "turns") if scope == "chat" else counted(planned.chats, "chats")
    return f"delete-{what.replace(',', '').replace(' ', '-')}"


def _counts(removed: PurgeCounts) -> str:
    return counted_fields(removed, (*SHOWN_COUNTS, "totals"))


def _message(scope: PurgeScope, removed: PurgeCounts, done: PurgeResult | None) -> str:
    lines = [f"Purged {_SCOPE_NAMES[scope]}: {_counts(removed)}. This chat is gone with this answer."]
    lines += [
        f"Left, as process {one.owner.pid} writes to it: {one.chat.key.value}"
        for one in (done.left if done else [])
    ]
    return "\n\n".join(lines)
