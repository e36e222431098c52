"""Wall-clock and monotonic time, in milliseconds."""

from __future__ import annotations

import time

DAY_MS = 24 * 60 * 60 * 1000


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds since an unknown start that all processes of this boot share."""
    return time.monotonic_ns() // 1_000_000
