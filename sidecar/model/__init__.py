"""Immutable values shared by the packages above. They are not sent: `sidecar_protocol` has the types of the
wire."""

from typing import Any

JsonObject = dict[str, Any]
"""A JSON object whose members are not known here: a tool's input, a provider's message, a part of the wire."""
