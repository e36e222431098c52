"""The contract's types as one JSON Schema document, for validators and generators of other languages."""

from __future__ import annotations

import json

from sidecar_protocol.catalog import METHODS, REQUESTS
from sidecar_protocol.limits import VERSIONS
from sidecar_protocol.messages.base import Json

from ..schemas import REF, schema_of, schemas

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> Json:
    """Every type under `$defs`; `x-methods` and `x-requests` name the types of each call."""
    text = json.dumps(
        {
            "$defs": schemas(),
            "x-methods": {
                row.name: {"params": schema_of(row.params), "result": schema_of(row.result)}
                for row in METHODS.values()
            },
            "x-requests": {
                row.name: {"params": schema_of(row.params), "result": schema_of(row.result)}
                for row in REQUESTS.values()
            },
        }
    )
    head = {"$schema": _DIALECT, "title": "Sidecar", "x-version": VERSIONS[-1]}
    parts: Json = json.loads(text.replace(REF, "#/$defs/"))
    return {**head, **parts}
