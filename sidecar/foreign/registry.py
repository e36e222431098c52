"""All programs whose chats can be read. A program is supported because it is in this table."""

from __future__ import annotations

from . import chatgpt, claude_ai, claude_code, codex, copilot, gemini_cli, opencode, qwen_code
from .base import Reader

READERS: dict[str, Reader] = {
    reader.NAME: reader
    for reader in (claude_code, codex, gemini_cli, opencode, copilot, qwen_code, chatgpt, claude_ai)
}

EXPORTS = (chatgpt.NAME, claude_ai.NAME)
"""Programs that keep their chats elsewhere: they need the path of an export."""
