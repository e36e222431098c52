"""Hooks: programs of the user that run at events of a chat, in the format of Claude Code.

Pure: parsing a file (`parsing`), which calls a matcher selects (`matching`), how a call is described to a hook
(`naming`, `payloads`), and what its output means (`answers`). Reads no file, and runs nothing.
"""

from .answers import HookDecision, HookOutput, combine_outputs, parse_output
from .hook import EVENTS, Hook, HookEventName
from .parsing import parse_hooks

__all__ = [
    "EVENTS",
    "Hook",
    "HookDecision",
    "HookEventName",
    "HookOutput",
    "combine_outputs",
    "parse_hooks",
    "parse_output",
]
