"""The contract as an OpenRPC 1.3 document; extensions hold the requests to the client, the notifications, the errors
and the event types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar_protocol.catalog import METHODS, NOTIFICATIONS, REQUESTS, Method, Question
from sidecar_protocol.errors import CODES
from sidecar_protocol.limits import VERSIONS
from sidecar_protocol.messages import EVENT_TYPES
from sidecar_protocol.messages.base import Json

from .examples import Example, examples
from .order import Order, order_of
from .schemas import Member, members, schema_of, schemas
from .vocabulary import MEANINGS, errors_of

OPENRPC_VERSION = "1.3.2"

_DESCRIPTION = (
    "JSON-RPC 2.0 over the standard input and output of a process that a desktop app spawns. "
    "Methods are asked by the client, `x-requests` by the sidecar. "
    "Parameters are named; unknown ones are refused."
)


def openrpc() -> Json:
    """The document that `rpc.discover` answers; the same at every call."""
    return document(examples())


def document(found: Mapping[str, Example]) -> Json:
    """The document with these examples."""
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": "Sidecar", "version": str(VERSIONS[-1]), "description": _DESCRIPTION},
        "methods": [_method(method, found.get(method.name)) for method in METHODS.values()],
        "components": {
            "schemas": schemas(),
            "errors": {name: {"code": code, "message": MEANINGS[name]} for name, code in CODES.items()},
        },
        "x-requests": [_question(question, found.get(question.name)) for question in REQUESTS.values()],
        "x-notifications": [
            {
                "name": notice.name,
                "sender": notice.sender,
                "summary": notice.summary,
                "params": schema_of(notice.params),
            }
            for notice in NOTIFICATIONS.values()
        ],
        "x-errors": [{"name": name, "code": code, "message": MEANINGS[name]} for name, code in CODES.items()],
        "x-event-types": {name: row.meaning for name, row in EVENT_TYPES.items()},
    }


def _method(method: Method, example: Example | None) -> Json:
    document: Json = {
        "name": method.name,
        "summary": method.summary,
        "tags": [{"name": method.scope}],
        "paramStructure": "by-name",
        "params": [_descriptor(member) for member in members(method.params.__name__)],
        "result": {"name": "result", "schema": schema_of(method.result)},
        "errors": [{"$ref": f"#/components/errors/{name}"} for name in errors_of(method)],
    }
    if order_of(method) != Order():
        document["x-order"] = {"events": list(order_of(method).events), "promise": order_of(method).promise}
    if example:
        document["examples"] = [_pairing(method, example)]
    return document


def _question(question: Question, example: Example | None) -> Json:
    document: Json = {
        "name": question.name,
        "offeredBy": question.offered_by,
        "summary": question.summary,
        "params": schema_of(question.params),
        "result": schema_of(question.result),
    }
    if example:
        document["example"] = {"params": example.params, "result": example.result}
    return document


def _descriptor(member: Member) -> Json:
    descriptor: Json = {"name": member.name, "required": member.required, "schema": member.schema}
    if member.meaning:
        descriptor["description"] = member.meaning
    return descriptor


def _pairing(method: Method, example: Example) -> dict[str, Any]:
    return {
        "name": method.name,
        "params": [{"name": name, "value": value} for name, value in example.params.items()],
        "result": {"name": "result", "value": example.result},
    }
