"""Hooks: programs of the user that are asked when something happens in a chat, in the format of Claude Code.

Pure: what a file says (`parsing`), which calls a matcher selects (`matching`), how a call is spelled for a hook
(`naming`, `payloads`), and what an answer means (`answers`). Reads no file, and runs nothing.
"""

from .answers import Answer, Verdict, answer_of, joined
from .hook import EVENTS, Event, Hook
from .parsing import parsed

__all__ = ["EVENTS", "Answer", "Event", "Hook", "Verdict", "answer_of", "joined", "parsed"]
