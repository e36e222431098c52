"""Every type that travels: parameters, results, items, turns and events, as the contract has them."""

from .chats import *  # noqa: F403
from .connection import *  # noqa: F403
from .content import *  # noqa: F403
from .events import *  # noqa: F403
from .prompts import *  # noqa: F403
from .providers import *  # noqa: F403
from .system import *  # noqa: F403
