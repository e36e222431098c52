"""What both ends of a connection agree on before the first message: names and numbers. Standard library only, because
`initialize` is answered before anything else is imported.
"""

from __future__ import annotations

PROTOCOL = "sidecar"
"""The name of this contract."""

VERSIONS = (1,)
"""The versions of the contract that this package speaks."""

FRAMINGS = ("lines", "headers")

DELIVERIES = ("queue", "steer", "interrupt", "reject")
"""What a prompt may ask for while a turn is running."""

CLIENT_MEMBERS = frozenset({"name", "version"})
CLIENT_CAPABILITIES = ("permissions", "input", "buffers")
"""Requests of the sidecar that a client can answer."""

INITIALIZE_MEMBERS = frozenset(
    {"protocol", "versions", "client", "processId", "capabilities", "tools", "deltaMs"}
)

TOOL_MEMBERS = frozenset({"name", "description", "inputSchema", "kind", "timeoutMs"})
"""Of a tool that an app offers."""

TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""A longer frame is skipped and answered with an error. Large enough for an attached photograph in base64, small
enough that one frame cannot exhaust memory."""

MAX_ID_BYTES = 512
"""Of the app's names for chats and prompts. Long enough for any UUID, URL or path; short enough to index."""

MAX_QUEUED_PROMPTS = 256
"""Of one chat. More waiting prompts than this come from a faulty client, not a person."""

MAX_DELTA_BYTES = 64 * 1024
"""Text that one combined delta may carry."""

MAX_META_BYTES = 16 * 1024
"""`meta` belongs to the app: large enough for labels and colours, too small to be a second store."""
