"""A short answer of a model file, to see that it runs here and how fast."""

from __future__ import annotations

import os

import anyio

from ...model.content import Block
from ...model.failures import ProviderFailed
from ..base import ModelRequest, ReplyPart, UserMessage
from . import speed
from .provider import LocalProvider

PROMPT = "Tell a long story about a lighthouse and a ship."

TOKENS = 32


def measure(model: str) -> float | None:
    """Let the model file answer, and return how many tokens a second it has written; None if it does not run."""
    return anyio.run(_measure, model)


async def _measure(model: str) -> float | None:
    provider = LocalProvider(os.path.dirname(model))
    request = ModelRequest(model, [UserMessage([Block(type="text", text=PROMPT)])], max_output=TOKENS)
    try:
        await provider.stream(request, _ignore)
    except ProviderFailed:
        return None
    finally:
        await provider.aclose()
    return speed.measured_rate(model)


async def _ignore(part: ReplyPart) -> None:
    pass
