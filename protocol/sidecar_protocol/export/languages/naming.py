"""Wire names as the languages spell them, and comments in short lines."""

from __future__ import annotations

import re
import textwrap

from .declarations import pascal

_WIDTH = 106


def camel(name: str) -> str:
    """`end_turn` as `endTurn`."""
    whole = pascal(name)
    return whole[0].lower() + whole[1:]


def snake(name: str) -> str:
    """`chatId` as `chat_id`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", camel(name)).lower()


def comment(meaning: str, mark: str = "///") -> list[str]:
    """Lines of a doc comment; none without a meaning."""
    lines = textwrap.wrap(meaning, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{mark} {line}" for line in lines]


def block_comment(meaning: str) -> list[str]:
    """A doc comment between `/**` and `*/`."""
    lines = comment(meaning.replace("*/", "* /"), " *")
    if not lines:
        return []
    if len(lines) == 1:
        return [f"/** {lines[0].removeprefix(' * ')} */"]
    return ["/**", *lines, " */"]


def indented(lines: list[str], by: int = 4) -> list[str]:
    return [" " * by + line if line else "" for line in lines]
