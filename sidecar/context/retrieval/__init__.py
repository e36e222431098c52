"""What of a chat's own past a prompt needs again. Pure: `store/recall` finds the messages, this chooses among them and
packs them into the room there is."""

from .packing import Snippet, packed, rendered
from .ranking import Scored, ranked
from .terms import terms_of

__all__ = ["Scored", "Snippet", "packed", "ranked", "rendered", "terms_of"]
