"""The settings of the index. They are part of the table in `keys`."""

from __future__ import annotations

from .key import SettingKey

_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB

INDEX = (
    SettingKey(
        "index.enabled",
        "flag",
        True,
        "Keep long tool output out of the context window and make it searchable.",
    ),
    SettingKey(
        "index.inline_max",
        "integer",
        2 * _KIB,
        "Maximum size of output that is sent completely, in bytes; for longer output the model gets a preview.",
        low=512,
        high=_MIB,
    ),
    SettingKey(
        "index.max_output_size",
        "integer",
        64 * _MIB,
        "Maximum size of one stored text in bytes; the rest is cut off, and the last line says so.",
        low=64 * _KIB,
        high=_GIB,
        project="never",
    ),
    SettingKey(
        "index.preview_tail_lines",
        "integer",
        50,
        "Number of last lines in a preview, within its tokens.",
        high=1000,
    ),
    SettingKey(
        "index.chunk_bytes",
        "integer",
        4 * _KIB,
        "Maximum size of a chunk in bytes.",
        low=512,
        high=64 * _KIB,
        project="never",
    ),
    SettingKey(
        "index.retrieval_limit",
        "integer",
        5,
        "Hits that the index adds to a prompt at most, and of a search that names no limit.",
        low=1,
        high=50,
    ),
    SettingKey(
        "index.retention_days",
        "integer",
        90,
        "Days without use after which a text is removed; 0 keeps texts forever.",
        high=36_500,
        project="never",
    ),
    SettingKey(
        "index.max_bytes",
        "integer",
        2 * _GIB,
        "Maximum size of all texts in bytes; beyond that the least recently used are removed.",
        low=_MIB,
        high=1024 * _GIB,
        project="never",
    ),
)
