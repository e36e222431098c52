"""The prompt cache: remembers prompts, and returns how much of a new one was cached.

Two ways, as providers have them: automatic prefixes (OpenAI, Gemini), and prefixes that end at marked blocks
(Anthropic). Nothing expires: a test should not wait five minutes.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Any

from .rules import prompt_tokens

REMEMBERED = 64  # prompts per key and model; older ones are evicted, as in a real cache
STEP = 128  # OpenAI reports cached tokens in steps of this size
LOOKBACK = 20  # Anthropic searches an entry this many blocks before a breakpoint


class PrefixCache:
    def __init__(self, minimum: int) -> None:
        self._minimum = minimum
        self._seen: dict[str, OrderedDict[str, None]] = {}
        self._written: dict[str, set[bytes]] = {}

    def automatic(self, scope: str, blocks: list[Any], total: int) -> int:
        """Return the tokens of the longest prefix in common with an earlier prompt of this scope; remember this one."""
        text = "".join(_plain(block) for block in blocks)
        seen = self._seen.setdefault(scope, OrderedDict())
        shared = max((_common(text, other) for other in seen), default=0)
        seen[text] = None
        seen.move_to_end(text)
        if len(seen) > REMEMBERED:
            seen.popitem(last=False)
        tokens = total * shared // max(len(text), 1)
        return tokens // STEP * STEP if tokens >= self._minimum else 0

    def marked(self, scope: str, blocks: list[tuple[Any, bool]]) -> tuple[int, int]:
        """Return tokens read and tokens written. A marked block ends a prefix that is to be cached."""
        digest, prefixes, total = hashlib.sha256(), [], 0
        for block, _ in blocks:
            digest.update(_plain(block).encode())
            total += prompt_tokens(without_cache_marks(block))
            prefixes.append((digest.copy().digest(), total))
        breakpoints = [at for at, (_, mark) in enumerate(blocks) if mark and prefixes[at][1] >= self._minimum]
        if not breakpoints:
            return 0, 0
        written = self._written.setdefault(scope, set())
        read = max((self._found(at, prefixes, written) for at in breakpoints), default=0)
        written.update(prefixes[at][0] for at in breakpoints)
        return read, max(0, prefixes[breakpoints[-1]][1] - read)

    @staticmethod
    def _found(at: int, prefixes: list[tuple[bytes, int]], written: set[bytes]) -> int:
        for index in range(at, max(-1, at - LOOKBACK), -1):
            if prefixes[index][0] in written:
                return prefixes[index][1]
        return 0


def _plain(block: Any) -> str:
    return json.dumps(without_cache_marks(block), sort_keys=True)


def without_cache_marks(value: Any) -> Any:
    """Remove `cache_control`: moving a breakpoint must not change the prefix."""
    if isinstance(value, dict):
        return {key: without_cache_marks(each) for key, each in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [without_cache_marks(each) for each in value]
    return value


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low
