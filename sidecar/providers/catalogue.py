"""What is publicly known of models, from the data file beside this module. A provider's own word goes before it."""

from __future__ import annotations

import os
import re
from functools import cache

import msgspec

_DATA = os.path.join(os.path.dirname(__file__), "models.json")

_SUFFIX = re.compile(r"-(\d{3,}|latest|preview|exp)")
"""What may follow a listed id: a date or a stage. A mere version number makes another model."""


class Known(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    match: str
    name: str
    window: int | None = None
    max_output: int | None = None
    modalities: tuple[str, ...] | None = None
    efforts: tuple[str, ...] = ()
    thinking: str | None = None
    reasoning: bool = False
    prices: dict[str, float] | None = None


class Catalogue(msgspec.Struct, frozen=True):
    models: list[Known]
    defaults: dict[str, str]

    def find(self, type: str, model: str) -> Known | None:
        """The entry of this very model, or of the one that it is a dated release of."""
        listed = [known for known in self.models if known.type == _family(type)]
        exact = next((known for known in listed if known.match == model), None)
        dated = [k for k in listed if model.startswith(k.match) and _SUFFIX.match(model, len(k.match))]
        return exact or max(dated, key=lambda known: len(known.match), default=None)

    def of(self, type: str) -> list[Known]:
        return [known for known in self.models if known.type == _family(type)]


def _family(type: str) -> str:
    """Both of OpenAI's APIs have the same models."""
    return "openai" if type == "openai-responses" else type


@cache
def catalogue() -> Catalogue:
    with open(_DATA, "rb") as file:
        return msgspec.json.decode(file.read(), type=Catalogue)
