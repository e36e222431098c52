"""Selects what a prompt needs from the chat's own past. Pure: `store/search/message_search` finds the
messages, this package ranks them and packs them into the available tokens."""

from .packing import Snippet, pack_snippets, render_snippets
from .ranking import Scored, rank_messages
from .terms import terms_of

__all__ = ["Scored", "Snippet", "pack_snippets", "rank_messages", "render_snippets", "terms_of"]
