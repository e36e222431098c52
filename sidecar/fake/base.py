"""What an imitated API must say for itself, and the house they all live in: its models, key, limits and memory."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .cache import PrefixCache
from .values import DEFAULT_MODELS, Event, Json, Model, Recorded, Rejected, Reply, Turn, Usage

Style = Literal["openai", "openrouter", "vllm", "deepseek"]
"""Whose dialect of Chat Completions: the fields of the model list, and where thoughts are told."""

STORED_RESPONSES = 256  # Responses remembers what it said for `previous_response_id`; the oldest go first


@dataclass
class House:
    """What the APIs of one fake share. `key` None: any key is good, and none as well."""

    key: str | None = None
    models: Sequence[Model] = DEFAULT_MODELS
    prefix: str | None = "fake"
    style: Style = "openai"
    cache_minimum: int = 1024
    body_limit: int = 32 * 1024 * 1024
    cache: PrefixCache = field(init=False)
    responses: OrderedDict[str, list[Json]] = field(default_factory=OrderedDict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Which reasoning item an output item of Responses came from; it must come back with it."""
    stored_reasoning: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cache = PrefixCache(self.cache_minimum)

    def model(self, name: str) -> Model | None:
        """A model by its name; one that is not listed when it starts with the prefix."""
        for model in self.models:
            if name in (model.id, f"{model.id}:latest"):
                return model
        return Model(name) if self.prefix is not None and name.startswith(self.prefix) else None

    def remember(self, response: str, items: list[Json]) -> None:
        self.responses[response] = items
        if len(self.responses) > STORED_RESPONSES:
            self.responses.popitem(last=False)


class Api(ABC):
    """One provider's API: which requests are its own, what it refuses, and how its answers look."""

    name: str

    @abstractmethod
    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool: ...

    @abstractmethod
    def plain(self, request: Recorded, house: House) -> Json | None:
        """The answer to a request that asks no model (lists, counts); None when it asks one."""

    @abstractmethod
    def check(self, request: Recorded, house: House) -> Turn:
        """Hold the request against every rule. Raises `Rejected`."""

    @abstractmethod
    def events(self, turn: Turn, reply: Reply, usage: Usage, house: House) -> Iterator[Event]: ...

    @abstractmethod
    def whole(self, turn: Turn, reply: Reply, usage: Usage, house: House) -> Json: ...

    @abstractmethod
    def error_body(self, rejected: Rejected) -> Json: ...

    @abstractmethod
    def error_event(self, rejected: Rejected, number: int) -> Event:
        """The refusal inside a stream; `number` is how many events came before it."""

    @abstractmethod
    def noise(self) -> list[Event]:
        """Events that a client has never heard of and must pass over."""

    def headers(self) -> dict[str, str]:
        return {"x-request-id": f"req_{uuid.uuid4().hex}"}

    def authorize(self, request: Recorded, house: House) -> None:
        """Bearer tokens, as most have them."""
        given = request.headers.get("authorization")
        if house.key is None or given == f"Bearer {house.key}":
            return
        if not given:
            raise Rejected(
                "You didn't provide an API key. You need to provide your API key in an Authorization header"
                " using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                status=401,
                reason="auth",
            )
        raise Rejected(
            f"Incorrect API key provided: {_masked(given)}. You can find your API key at"
            " https://platform.openai.com/account/api-keys.",
            status=401,
            reason="auth",
        )


def new_id(prefix: str) -> str:
    """Never the same twice, also not in the next process: chats outlive a fake."""
    return prefix + uuid.uuid4().hex[:24]


def scope(request: Recorded, model: str) -> str:
    """Whose cache it is: one key's, of one model, by one API."""
    headers = request.headers
    key = headers.get("authorization") or headers.get("x-api-key") or headers.get("x-goog-api-key") or ""
    return f"{request.api} {model} {key}"


def an_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _masked(header: str) -> str:
    key = header.removeprefix("Bearer ")
    return key if len(key) < 12 else f"{key[:4]}****{key[-4:]}"
