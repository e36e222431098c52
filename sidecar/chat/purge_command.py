"""`/purge`: says what would go and which word to type; with that word, it goes. The word counts what it removes, so
that one typed out of habit, or for what was there a while ago, does nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ..model.failures import Refused, invalid
from ..model.figures import Removed
from . import purging
from .chats import Chats
from .housekeeping import told
from .identity import Address
from .purging import Purged, Scope, Target
from .session import Session

Then = Callable[[], Awaitable[None]]

_WHAT = {"chat": "this chat", "project": "this project's chats and data", "all": "all chats and data"}
_SHOWN = (
    "chats",
    "turns",
    "messages",
    "patches",
    "blobs",
    "sources",
    "pages",
    "snapshots",
    "rules",
    "totals",
)


async def run(
    chats: Chats, session: Session, words: Sequence[str]
) -> tuple[dict[str, Any], str, Then | None]:
    """The answer, and what is done once that is kept: this chat goes last."""
    scope, typed = _read(words)
    wanted = await _target(chats, session, scope)
    planned = await purging.planned(chats, wanted)
    word = _word(scope, planned)
    data: dict[str, Any] = {"scope": scope, "word": word, "removed": told(planned)}
    if typed is None:
        how = f"It does not come back. To do it, type `/purge {scope} {word}`."
        return (
            {**data, "dryRun": True},
            f"This would remove {_WHAT[scope]}: {_counts(planned)}.\n\n{how}",
            None,
        )
    if typed != word:
        raise Refused(
            "invalid_params",
            f"`text`: the word for it is {word}, as it would remove {_counts(planned)}",
            params={"field": "text", "word": word},
        )
    others = msgspec.structs.replace(wanted, chats=[id for id in wanted.chats if id != session.chat.id])
    done = await purging.purge(chats, others) if scope != "chat" else None
    mine = Target("chat", [session.chat.id])

    async def then() -> None:
        await purging.purge(chats, mine)

    own = await purging.planned(chats, mine)
    removed = own.plus(done.removed) if done else own
    left = [one.chat.key.session_id for one in done.left] if done else []
    return {**data, "removed": told(removed), "left": left}, _told(scope, removed, done), then


def _read(words: Sequence[str]) -> tuple[Scope, str | None]:
    scope = words[0] if words else "chat"
    if scope not in ("chat", "project", "all") or len(words) > 2:
        raise invalid(
            "text", "/purge, /purge chat, /purge project or /purge all, and then the word that it names"
        )
    return scope, words[1] if len(words) > 1 else None  # type: ignore[return-value]


async def _target(chats: Chats, session: Session, scope: Scope) -> Target:
    if scope == "chat":
        return Target("chat", [session.chat.id])
    project = session.chat.project_path if scope == "project" else None
    if scope == "project" and project is None:
        raise invalid("text", "/purge or /purge all: this chat has no project")
    return await purging.target(chats, scope, Address(project_path=project))


def _word(scope: Scope, planned: Removed) -> str:
    return f"delete-{planned.turns}-turns" if scope == "chat" else f"delete-{planned.chats}-chats"


def _counts(removed: Removed) -> str:
    counts = [(getattr(removed, name), name) for name in _SHOWN]
    return (
        ", ".join(f"{count} {name if count != 1 else name[:-1]}" for count, name in counts if count)
        or "nothing"
    )


def _told(scope: Scope, removed: Removed, done: Purged | None) -> str:
    lines = [f"Purged {_WHAT[scope]}: {_counts(removed)}. This chat is gone with this answer."]
    lines += [
        f"Left, as process {one.held.facts['owner']['pid']} writes to it: {one.chat.key.value}"
        for one in (done.left if done else [])
    ]
    return "\n\n".join(lines)
