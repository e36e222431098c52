"""Events on their way to the journal: buffered, joined and committed in order."""

from __future__ import annotations

import anyio.lowlevel

from tests.unit.chat.memory import events, open_session
from tests.unit.engines.sinks import ScriptedReplies

DELTA = ("message.delta", "t-1", "i-1")


async def test_waiting_for_the_disk_ends_when_nothing_follows_the_commit_under_way() -> None:
    async with open_session(ScriptedReplies()) as session:
        await session.recorder.delta(*DELTA, "a")
        await anyio.lowlevel.checkpoint()  # the commit begins, and what collects is empty
        await session.recorder.wait_flushed()
        found = await events(session)

    assert found == [("message.delta", {"itemId": "i-1", "text": "a"})]
