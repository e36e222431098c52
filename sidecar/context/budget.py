"""The token budget of a request, and the cap of each kind of block. Pure."""

from __future__ import annotations

import msgspec

ASSUMED_WINDOW = 128_000
"""For an unknown model; the chat gets a notice."""

DEFAULT_RESERVE = 8192
MARGIN = 0.02
"""The share left unused where a count is an estimate."""

TOOLS_SHARE = 0.4
"""The most that tool definitions take: a model that knows every tool and nothing of the chat is useless. A
share of the budget, independent of the prompt, so that every request has the same tools: they come first in
what a provider caches."""

SNAPSHOT_TOKENS = 500
SNAPSHOT_SHARE = 8
"""Tokens of a resume snapshot, and its limit in per cent of a small budget."""


class Budget(msgspec.Struct, frozen=True):
    """In tokens: the model's context window, what is reserved for its answer, and what may be sent."""

    window: int
    reserve: int
    total: int


class Caps(msgspec.Struct, frozen=True):
    """The most that each kind of block takes, in tokens; what one does not use is available to those after
    it."""

    per_file: int
    open_files: int
    diffs: int
    git_diff: int
    retrieval: int
    rules: int
    tools: int
    file_list: int = 200
    patch_summary: int = 300
    snapshot: int = SNAPSHOT_TOKENS


class ConfiguredCaps(msgspec.Struct, frozen=True, rename="camel"):
    """Caps as configured, for a context window of ordinary size."""

    per_file: int = 2000
    open_files: int = 8000
    diffs: int = 4000
    git_diff: int = 3000
    retrieval: int = 2000
    rules: int = 4000


_SHARES = ConfiguredCaps(per_file=10, open_files=30, diffs=15, git_diff=10, retrieval=25, rules=20)
"""In per cent of a small budget: no block may displace all others."""


def budget(window: int, reserve: int | None, *, exact: bool = False) -> Budget:
    kept = min(reserve or min(DEFAULT_RESERVE, window // 4), window)
    margin = 0 if exact else int(window * MARGIN)
    return Budget(window, kept, max(0, window - kept - margin))


def caps(total: int, wanted: ConfiguredCaps) -> Caps:
    """Return the caps of a budget: as configured for an ordinary size, more in a large window, a share of a
    small one."""
    larger = max(1.0, total / ASSUMED_WINDOW)

    def cap(name: str) -> int:
        return min(int(getattr(wanted, name) * larger), total * int(getattr(_SHARES, name)) // 100)

    of_blocks = {name: cap(name) for name in ConfiguredCaps.__struct_fields__}
    snapshot = min(SNAPSHOT_TOKENS, total * SNAPSHOT_SHARE // 100)
    return Caps(**of_blocks, tools=int(total * TOOLS_SHARE), snapshot=snapshot)
