"""All programs whose chats can be read. A program is supported because it is in this table."""

from __future__ import annotations

from . import claude_code, codex
from .base import Reader

READERS: dict[str, Reader] = {"claude-code": claude_code, "codex": codex}
