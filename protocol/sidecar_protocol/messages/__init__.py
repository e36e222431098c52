"""Every type that travels: parameters, results, items, turns and events, as the contract has them.

Making a type takes a part of a millisecond, so those of `later` are made when the first of them is asked for.
"""

from typing import TYPE_CHECKING

from .base import Empty as Empty
from .base import Key as Key
from .chats import *  # noqa: F403
from .connection import *  # noqa: F403
from .content import *  # noqa: F403
from .events import *  # noqa: F403
from .prompts import *  # noqa: F403

if TYPE_CHECKING:
    from .later import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        if name[:1].isupper():
            from . import later

            if name in vars(later):
                return getattr(later, name)
        raise AttributeError(f"The contract has no {name!r}")
