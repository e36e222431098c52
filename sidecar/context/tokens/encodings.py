"""The two public encodings, from the tables beside this module. Knows no model and keeps no count.

tiktoken's own constructors download the tables on the first use. We give its encoder ours, so nothing is
downloaded, and load each once, when it is first asked for: that takes a few hundred milliseconds of a processor,
so ask from a thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from . import ranks

if TYPE_CHECKING:
    from tiktoken import Encoding

O200K = "o200k_base"
CL100K = "cl100k_base"


class Table(msgspec.Struct, frozen=True):
    """What tiktoken says about an encoding; a test holds these against the installed package."""

    pattern: str
    """Splits a text into the pieces that are encoded each for itself."""
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

_loaded: dict[str, Encoding] = {}
_loading = {name: threading.Lock() for name in TABLES}


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.ranks")


def is_loaded(name: str) -> bool:
    return name in _loaded


def encoding(name: str) -> Encoding:
    """The encoder; the first call loads it, and others that come meanwhile wait for that one."""
    found = _loaded.get(name)
    if found is None:
        with _loading[name]:
            found = _loaded.get(name) or _loaded.setdefault(name, _load(name))
    return found


def _load(name: str) -> Encoding:
    from tiktoken import Encoding

    table = ranks.unpacked(path_of(name).read_bytes())
    # Without special tokens, what looks like one in a user's text is text.
    made = Encoding(name, pat_str=TABLES[name].pattern, mergeable_ranks=table, special_tokens={})
    # The encoder has copied the table; this one would only hold 20 MB.
    table.clear()
    return made
