"""The two public encodings, from the tables beside this module. Knows no model and caches no count.

tiktoken's own constructors download the tables on first use. Its encoder gets the bundled tables instead, so
nothing is downloaded. Each is loaded once, on first use, which takes a few hundred milliseconds of CPU time,
so call it in a thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...system.lazy import lazy_module
from . import ranks

if TYPE_CHECKING:
    import tiktoken
else:
    tiktoken = lazy_module("tiktoken")

O200K = "o200k_base"
CL100K = "cl100k_base"


class Table(msgspec.Struct, frozen=True):
    """What tiktoken defines for an encoding; a test compares these with the installed package."""

    pattern: str
    """Splits a text into pieces that are encoded separately."""
    sha256: str
    """Of the published file."""
    tokens: int


_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

TABLES = {
    O200K: Table(
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        199_998,
    ),
    CL100K: Table(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        100_256,
    ),
}

_loaded: dict[str, tiktoken.Encoding] = {}
_loading = {name: threading.Lock() for name in TABLES}


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.ranks")


def is_loaded(name: str) -> bool:
    return name in _loaded


def encoding(name: str) -> tiktoken.Encoding:
    """Return the encoder; the first call loads it, and concurrent calls wait for it."""
    found = _loaded.get(name)
    if found is None:
        with _loading[name]:
            found = _loaded.get(name) or _loaded.setdefault(name, _load(name))
    return found


def _load(name: str) -> tiktoken.Encoding:
    table = ranks.unpack_ranks(path_of(name).read_bytes())
    # Without special tokens, text that looks like one is encoded as text.
    made = tiktoken.Encoding(name, pat_str=TABLES[name].pattern, mergeable_ranks=table, special_tokens={})
    # The encoder has copied the table; keeping it would cost 20 MB.
    table.clear()
    return made
