"""Decides which turns were refused: what the provider or the budget did not accept is not history.

A turn that was refused before any answer is not sent again, though the user still sees it. For one that was
refused after some steps, what entered since the last step is omitted. `store/tables/refusals` has the same
rule in SQL.
"""

from __future__ import annotations

import msgspec

from ..text.token_estimate import estimate_tokens
from . import JsonObject
from .content import Block, Item, StoredError, Turn

REFUSING_REASONS = ("refused", "window")
"""Of a provider's failure: the content was not accepted, and would not be the next time."""

REFUSING_STATUSES = (400, 413, 414, 415, 422)
"""HTTP statuses of a refused request whose message gives no reason."""

ANSWERS = ("message", "tool")
"""Items of the model that later requests contain; a thought is not sent again."""

LEFT_OUT = "[left out: the request that carried this was refused]"


def is_refused(turn: Turn) -> bool:
    """Return whether the turn's prompt was refused before any answer."""
    if any(item.type in ANSWERS for item in turn.items):
        return False
    return turn.reason == "refusal" or is_refusal(turn.error)


def has_refused_prompt(turn: Turn) -> bool:
    """Return whether the turn is refused and its prompt is its own, not that of a turn which it continued."""
    return is_refused(turn) and any(item.type == "user" for item in turn.items)


def is_refusal(error: StoredError | None) -> bool:
    """Return whether a turn's error says that its content was not accepted."""
    data = error.data if error else {}
    return data.get("name") == "context_budget" or is_provider_refusal(data)


def is_provider_refusal(data: JsonObject) -> bool:
    """Return the same for the provider's part only, for the details of an error."""
    if data.get("name") != "provider_error":
        return False
    params, reason = data.get("params"), data.get("reason")
    status = params.get("status") if isinstance(params, dict) else None
    unnamed = reason == "bad_reply" and isinstance(status, int) and status in REFUSING_STATUSES
    return unnamed or (isinstance(reason, str) and reason in REFUSING_REASONS)


def without_refused(turn: Turn) -> Turn:
    """Return the turn without what its last, refused request added: outputs of its last tools, and steers.

    Of one that did not fit the budget only the steers that were too large: outputs are cut where they are sent.
    """
    data = turn.error.data if turn.error else {}
    if not is_refusal(turn.error):
        return turn
    is_ours, excess = data.get("name") == "context_budget", _excess(data)
    last = max((at for at, item in enumerate(turn.items) if item.type in ("message", "thought")), default=-1)
    prompt = next((at for at, item in enumerate(turn.items) if item.type == "user"), -1)
    items = [
        item
        if at <= last or at == prompt or (is_ours and _is_within(item, excess))
        else _without_output_text(item)
        for at, item in enumerate(turn.items)
    ]
    return msgspec.structs.replace(turn, items=items)


def _excess(data: JsonObject) -> int | None:
    """Return by how many tokens the turn exceeded its budget, if that is known."""
    needed, available = data.get("needed"), data.get("available")
    return needed - available if isinstance(needed, int) and isinstance(available, int) else None


def _is_within(item: Item, excess: int | None) -> bool:
    """Return whether the item alone was not what exceeded the budget."""
    if excess is None:
        return True
    said = item.text or "".join(block.text or "" for block in item.content or ())
    return item.type != "user" or 2 * estimate_tokens(said) < excess


def _without_output_text(item: Item) -> Item:
    if item.type == "tool" and item.output:
        output = {name: value for name, value in item.output.items() if name != "content"}
        return msgspec.structs.replace(item, output=output | {"text": LEFT_OUT})
    if item.type == "user" or (item.type == "notice" and item.content):
        return msgspec.structs.replace(item, text=LEFT_OUT, content=[Block(type="text", text=LEFT_OUT)])
    return item
