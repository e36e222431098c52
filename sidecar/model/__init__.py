"""Immutable values shared by the packages above. They are not sent: `sidecar_protocol` has the types of the
wire."""

from typing import Literal

JsonObject = dict[str, object]
"""A JSON object whose members are not known here: a tool's input, a provider's message, a part of the wire. Whoever
reads a member checks its type first."""

FileScope = Literal["user", "project"]
"""Whose file of settings, hooks or rules it is: the user's, or one in the project."""
