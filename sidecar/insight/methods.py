"""The methods of the contract that the page may call. Everything else is refused before it reaches the sidecar."""

from __future__ import annotations

READS = frozenset(
    {
        "stats/read",
        "chat/list",
        "chat/search",
        "chat/history",
        "chat/context",
        "index/list",
        "index/search",
        "index/chunks",
        "rules/list",
        "tools/list",
        "hooks/list",
        "engines/list",
        "patches/list",
        "patches/show",
        "doctor/run",
    }
)
CHANGES = frozenset({"chat/delete", "index/add", "index/remove", "patches/revert"})
"""The page asks the user once before each of them."""

ALLOWED = READS | CHANGES
