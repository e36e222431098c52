"""The two public encodings, from the tables beside this module. Knows no model and caches no count.

tiktoken's own constructors download the tables on first use. Its encoder gets the bundled tables instead, so
nothing is downloaded. Loading an encoder takes a few hundred milliseconds of CPU time and 55 MB, so the first texts of
a process are looked up in the table on disk, with the same result.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...system.lazy import lazy_module
from .lookup import LookupEncoder
from .ranks import open_table

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

MAX_LOOKED_UP = 512 << 10
"""Code points of a process that are looked up, in about 150 ms; a process that counts more needs the encoder."""

MAX_LOOKED_UP_TEXT = 128 << 10
"""Of one text: about 40 ms."""

_loaded: dict[str, tiktoken.Encoding] = {}
_loading = {name: threading.Lock() for name in TABLES}
_lookups: dict[str, LookupEncoder] = {}
_looked_up = dict.fromkeys(TABLES, 0)


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.ranks")


def is_ready(name: str) -> bool:
    """Whether texts are split at once: by the encoder, or by the table on disk that is in use."""
    return name in _loaded or (name in _lookups and _looked_up[name] <= MAX_LOOKED_UP)


def split(name: str, text: str) -> list[bytes]:
    """Return the tokens of a text."""
    found = None if name in _loaded else _look_up(name, text)
    if found is None:
        encoder = encoding(name)
        found = encoder.decode_tokens_bytes(encoder.encode_ordinary(text))
    return found


def count(name: str, text: str) -> int:
    """Return the number of tokens of a text."""
    found = None if name in _loaded else _look_up(name, text)
    return len(encoding(name).encode_ordinary(text)) if found is None else len(found)


def _look_up(name: str, text: str) -> list[bytes] | None:
    """Return the tokens of a text without the encoder; None if it takes the encoder."""
    if _looked_up[name] > MAX_LOOKED_UP or len(text) > MAX_LOOKED_UP_TEXT:
        return None
    _looked_up[name] += len(text)
    lookup = _lookups.get(name)
    if lookup is None:
        lookup = _lookups.setdefault(name, LookupEncoder(open_table(path_of(name)), TABLES[name].pattern))
    return lookup.split(text)


def encoding(name: str) -> tiktoken.Encoding:
    """Return the encoder; the first call loads it, and concurrent calls wait for it."""
    found = _loaded.get(name)
    if found is None:
        with _loading[name]:
            found = _loaded.get(name) or _loaded.setdefault(name, _load(name))
    return found


def _load(name: str) -> tiktoken.Encoding:
    table = open_table(path_of(name)).read_all()
    # Without special tokens, text that looks like one is encoded as text.
    made = tiktoken.Encoding(name, pat_str=TABLES[name].pattern, mergeable_ranks=table, special_tokens={})
    # The encoder has copied the table; keeping it would cost 20 MB.
    table.clear()
    return made
