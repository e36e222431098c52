"""The interface of an imitated API, and the state they share: models, key, limits and memory."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .cache import PrefixCache
from .values import DEFAULT_MODELS, Json, Model, ModelCall, PlannedReply, Recorded, Rejected, SentEvent, Usage

Style = Literal["openai", "openrouter", "vllm", "deepseek"]
"""The vendor of a Chat Completions dialect: the fields of the model list, and where thoughts are sent."""

STORED_RESPONSES = 256  # Responses stores its output for `previous_response_id`; the oldest is dropped first


@dataclass
class Vendor:
    """What the APIs of one fake share. `key` None: any key is valid, also a missing one."""

    key: str | None = None
    models: Sequence[Model] = DEFAULT_MODELS
    prefix: str | None = "fake"
    style: Style = "openai"
    cache_minimum: int = 1024
    body_limit: int = 32 * 1024 * 1024
    cache: PrefixCache = field(init=False)
    responses: OrderedDict[str, list[Json]] = field(default_factory=OrderedDict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Which reasoning item an output item of Responses came from; it must be sent back with it."""
    stored_reasoning: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cache = PrefixCache(self.cache_minimum)

    def model(self, name: str) -> Model | None:
        """Return a model by its name; also an unlisted one when it starts with the prefix."""
        for model in self.models:
            if name in (model.id, f"{model.id}:latest"):
                return model
        return Model(name) if self.prefix is not None and name.startswith(self.prefix) else None

    def remember(self, response: str, items: list[Json]) -> None:
        self.responses[response] = items
        if len(self.responses) > STORED_RESPONSES:
            self.responses.popitem(last=False)


class Api(ABC):
    """One provider's API: which requests belong to it, what it refuses, and its response format."""

    name: str

    @abstractmethod
    def serves(self, method: str, path: str, headers: Mapping[str, str]) -> bool: ...

    @abstractmethod
    def fixed_response(self, request: Recorded, vendor: Vendor) -> Json | None:
        """Return the response to a request without a model (lists, counts); None when it needs one."""

    @abstractmethod
    def check(self, request: Recorded, vendor: Vendor) -> ModelCall:
        """Check the request against every rule. Raises `Rejected`."""

    @abstractmethod
    def events(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Iterator[SentEvent]: ...

    @abstractmethod
    def complete_body(
        self, model_call: ModelCall, reply: PlannedReply, usage: Usage, vendor: Vendor
    ) -> Json: ...

    @abstractmethod
    def error_body(self, rejected: Rejected) -> Json: ...

    @abstractmethod
    def error_event(self, rejected: Rejected, number: int) -> SentEvent:
        """Return the refusal inside a stream; `number` is how many events came before it."""

    @abstractmethod
    def noise(self) -> list[SentEvent]:
        """Return unknown events, which a client must ignore."""

    def headers(self) -> dict[str, str]:
        return {"x-request-id": f"req_{uuid.uuid4().hex}"}

    def authorize(self, request: Recorded, vendor: Vendor) -> None:
        """Check bearer tokens, which most APIs use."""
        given = request.headers.get("authorization")
        if vendor.key is None or given == f"Bearer {vendor.key}":
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
    """Return a unique id, also across processes: chats outlive a fake."""
    return prefix + uuid.uuid4().hex[:24]


def cache_scope(request: Recorded, model: str) -> str:
    """Return the scope of the cache: one key, one model, one API."""
    headers = request.headers
    key = headers.get("authorization") or headers.get("x-api-key") or headers.get("x-goog-api-key") or ""
    return f"{request.api} {model} {key}"


def as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _masked(header: str) -> str:
    key = header.removeprefix("Bearer ")
    return key if len(key) < 12 else f"{key[:4]}****{key[-4:]}"
