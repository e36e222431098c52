"""Facts of a chat as events and items: how each is made, in one place. Pure, but for new ids and the clock."""

from __future__ import annotations

from typing import Any

from ..model.chats import Prompt
from ..model.content import Block, Item
from ..model.events import NewEvent
from ..model.failures import Refused
from .running import new_id, now


def busy() -> Refused:
    return Refused("turn_in_progress", "A turn is running in this chat", retryable=True, action="retry")


def user_item(turn_id: str, content: list[Block]) -> Item:
    text = "".join(block.text or "" for block in content if block.type == "text")
    at = now()
    return Item(
        id=new_id("i"),
        turn_id=turn_id,
        type="user",
        status="completed",
        started_at=at,
        ended_at=at,
        text=text,
        content=content,
    )


def accepted(prompt_id: str, turn_id: str, delivery: str, item: Item | None) -> dict[str, Any]:
    """What `prompt.accepted` says: also what the user wants from now on, found in the prompt's words."""
    data: dict[str, Any] = {"promptId": prompt_id, "turnId": turn_id, "delivery": delivery}
    if item is None:
        return data
    from ..context.standing import standing  # its word lists are read when the first prompt comes

    wishes = standing(item.text or "")
    return {**data, "item": item, "standing": wishes} if wishes else {**data, "item": item}


def prompt_event(type: str, prompt: Prompt, **more: Any) -> NewEvent:
    data = {
        "promptId": prompt.id,
        "turnId": prompt.turn_id,
        "delivery": prompt.delivery,
        "content": prompt.content,
    }
    return NewEvent(type, {**data, **more})


def removed(prompt: Prompt) -> NewEvent:
    return NewEvent("prompt.removed", {"promptId": prompt.id, "turnId": prompt.turn_id})


def queue_event(paused: bool, reason: str) -> NewEvent:
    return NewEvent("queue.updated", {"paused": paused, "reason": reason})
