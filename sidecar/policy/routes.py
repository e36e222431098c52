"""Which rules of `routing` are on. Light: settings are turned into it before a first word is said."""

from __future__ import annotations

from collections.abc import Collection

import msgspec


class Routing(msgspec.Struct, frozen=True):
    """The rules that are on, and their thresholds. `noisy` are further programs that print much."""

    big_reads: bool = True
    big_reads_bytes: int = 64 * 1024
    fetches: bool = True
    noisy_commands: bool = True
    noisy: Collection[str] = ()
    long_listings: bool = True
    long_listings_max: int = 100
