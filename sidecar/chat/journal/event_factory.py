"""Creates the events and items of a chat, in one place. Pure, except for new ids and the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from ...model.chats import Prompt
from ...model.content import Block, Item
from ...model.events import NewEvent
from ...model.failures import Refused
from ...system.clock import now
from ...system.lazy import lazy_module
from .running_turn import new_id

if TYPE_CHECKING:
    from ...context import standing
else:
    standing = lazy_module("sidecar.context.standing")


def turn_in_progress() -> Refused:
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


class AcceptedData(TypedDict):
    """The data of `prompt.accepted`."""

    promptId: str
    turnId: str
    delivery: str
    item: NotRequired[Item]
    standing: NotRequired[list[str]]


def accepted_data(prompt_id: str, turn_id: str, delivery: str, item: Item | None) -> AcceptedData:
    """The data of `prompt.accepted`, including the standing wishes that are found in the prompt's text."""
    data: AcceptedData = {"promptId": prompt_id, "turnId": turn_id, "delivery": delivery}
    if item is None:
        return data
    data["item"] = item
    if wishes := standing.find_standing(item.text or ""):
        data["standing"] = wishes
    return data


def prompt_event(type: str, prompt: Prompt, **more: Any) -> NewEvent:
    data = {
        "promptId": prompt.id,
        "turnId": prompt.turn_id,
        "delivery": prompt.delivery,
        "content": prompt.content,
    }
    return NewEvent(type, {**data, **more})


def removed_event(prompt: Prompt) -> NewEvent:
    return NewEvent("prompt.removed", {"promptId": prompt.id, "turnId": prompt.turn_id})


def queue_event(paused: bool, reason: str) -> NewEvent:
    return NewEvent("queue.updated", {"paused": paused, "reason": reason})
