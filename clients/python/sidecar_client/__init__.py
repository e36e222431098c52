"""Talk to a sidecar from Python: spawn it, open chats, stream answers.

    async with Sidecar.spawn(model="echo:") as app:
        chat = await app.chat("tab-7")
        async for event in chat.prompt("Hello"):
            if event.type == "message.delta":
                print(event.text, end="")

Knows the contract (`sidecar_protocol`) and nothing of the program on the other side.
"""

import logging

from sidecar_protocol.messages import (
    InputAnswer,
    InputRequest,
    Item,
    PermissionAnswer,
    PermissionRequest,
    ToolCallRequest,
    ToolCallResult,
    Turn,
)

from .answer import Answer
from .app import Sidecar
from .chat import Chat
from .errors import ChatReplaced, RpcError, SidecarDied, SidecarError, TurnFailed
from .events import Event
from .handlers import Handlers, Tool

__all__ = [
    "Answer",
    "Chat",
    "ChatReplaced",
    "Event",
    "Handlers",
    "InputAnswer",
    "InputRequest",
    "Item",
    "PermissionAnswer",
    "PermissionRequest",
    "RpcError",
    "Sidecar",
    "SidecarDied",
    "SidecarError",
    "Tool",
    "ToolCallRequest",
    "ToolCallResult",
    "Turn",
    "TurnFailed",
]

# The app decides what of the client's log is shown, and where.
logging.getLogger(__name__).addHandler(logging.NullHandler())
