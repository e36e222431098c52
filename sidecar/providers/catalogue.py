"""Public facts about models, from the data file beside this module. What a provider reports takes precedence."""

from __future__ import annotations

import os
import re
from functools import cache

import msgspec

_DATA = os.path.join(os.path.dirname(__file__), "models.json")

_SUFFIX = re.compile(r"-(\d{3,}|latest|preview|exp)")
"""What may follow a listed id: a date or a stage. A version number alone is another model."""


class CatalogueEntry(msgspec.Struct, frozen=True, rename="camel"):
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
    tools: bool | None = None
    thinks: bool | None = None

    @property
    def is_thinking(self) -> bool | None:
        """Return whether the model thinks before it answers, by what is listed of how that is requested."""
        return self.thinks if self.thinks is not None else self.reasoning or self.thinking is not None or None


class Catalogue(msgspec.Struct, frozen=True):
    models: list[CatalogueEntry]
    defaults: dict[str, str]

    def find(self, type: str, model: str) -> CatalogueEntry | None:
        """Return the entry of this model, or of the one that it is a dated release of."""
        listed = [known for known in self.models if known.type == _family(type)]
        exact = next((known for known in listed if known.match == model), None)
        dated = [k for k in listed if model.startswith(k.match) and _SUFFIX.match(model, len(k.match))]
        return exact or max(dated, key=lambda known: len(known.match), default=None)

    def of(self, type: str) -> list[CatalogueEntry]:
        return [known for known in self.models if known.type == _family(type)]


def _family(type: str) -> str:
    """Return the vendor: both APIs of OpenAI have the same models."""
    return "openai" if type == "openai-responses" else type


@cache
def catalogue() -> Catalogue:
    with open(_DATA, "rb") as file:
        return msgspec.json.decode(file.read(), type=Catalogue)
