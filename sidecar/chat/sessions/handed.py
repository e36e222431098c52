"""What a process may ask of the one that writes to a chat, and what comes of it: plain values, stored as JSON."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from ...model import JsonObject
from ...model.content import Block
from ...model.failures import Failure
from ..services.client_app import InputAnswer, PermissionAnswer
from .arrivals import IncomingPrompt, QueueFate

T = TypeVar("T")


class HandedPrompt(msgspec.Struct, frozen=True, tag="send"):
    prompt: IncomingPrompt


class HandedEdit(msgspec.Struct, frozen=True, tag="edit"):
    prompt_id: str
    content: list[Block]
    revision: int | None


class HandedRemoval(msgspec.Struct, frozen=True, tag="remove"):
    prompt_id: str
    revision: int | None


class HandedResume(msgspec.Struct, frozen=True, tag="resume"):
    """Let the queue continue."""


class HandedCancel(msgspec.Struct, frozen=True, tag="cancel"):
    turn_id: str | None
    queue: QueueFate


class HandedPermission(msgspec.Struct, frozen=True, tag="permission"):
    id: str
    answer: PermissionAnswer


class HandedInput(msgspec.Struct, frozen=True, tag="input"):
    id: str
    answer: InputAnswer


HandedRequest = (
    HandedPrompt | HandedEdit | HandedRemoval | HandedResume | HandedCancel | HandedPermission | HandedInput
)
"""What a process that does not write to a chat may ask the one that does."""


class Handed(msgspec.Struct, Generic[T], frozen=True):
    """A request that can be handed over, and the type of its result, which msgspec decodes."""

    request: HandedRequest
    result: Any


class HandedFailure(msgspec.Struct, frozen=True):
    """A failure of the owner, for the client of the sender."""

    name: str
    message: str
    reason: str | None
    params: JsonObject | None
    retryable: bool
    retry_after_ms: int | None
    action: str | None
    hint: str | None
    facts: JsonObject


class HandedOutcome(msgspec.Struct, frozen=True):
    """What came of a request: its result, or the failure."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    failure: HandedFailure | None = None

    def read(self, handed: Handed[T]) -> T:
        """Return the result; raise the failure."""
        if self.failure is not None:
            raise Failure(**msgspec.structs.asdict(self.failure))
        result: T = msgspec.json.decode(self.result, type=handed.result)
        return result

    @classmethod
    def of(cls, failure: Failure) -> HandedOutcome:
        """Describe a failure of the owner."""
        members = {name: getattr(failure, name) for name in HandedFailure.__struct_fields__}
        return cls(failure=HandedFailure(**members))
