"""The settings about what is kept out of the window. They are part of the table in `keys`."""

from __future__ import annotations

from .key import Key

_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB

INDEX = (
    Key(
        "index.enabled",
        "flag",
        True,
        "Whether tools' outputs are kept out of the window and can be searched; without it chats run as before.",
    ),
    Key(
        "index.inline_max",
        "integer",
        2 * _KIB,
        "Bytes of an output that the model is given whole; of a longer one it gets a preview.",
        low=512,
        high=_MIB,
    ),
    Key(
        "index.max_output_size",
        "integer",
        64 * _MIB,
        "Bytes of one text that are kept; the rest is cut off, and a line says so.",
        low=64 * _KIB,
        high=_GIB,
        project="never",
    ),
    Key(
        "index.preview_tail_lines",
        "integer",
        50,
        "Last lines that a preview shows, as far as its tokens reach.",
        high=1000,
    ),
    Key(
        "index.chunk_bytes",
        "integer",
        4 * _KIB,
        "Bytes of the largest piece that a text is divided into to be found.",
        low=512,
        high=64 * _KIB,
        project="never",
    ),
    Key("index.retrieval_limit", "integer", 5, "Hits that a search brings, at most.", low=1, high=50),
    Key(
        "index.retention_days",
        "integer",
        90,
        "Texts that nobody has used for so many days are removed; 0 keeps them for ever.",
        high=36_500,
        project="never",
    ),
    Key(
        "index.max_bytes",
        "integer",
        2 * _GIB,
        "Bytes of all texts together; beyond that the least recently used are removed.",
        low=_MIB,
        high=1024 * _GIB,
        project="never",
    ),
)
