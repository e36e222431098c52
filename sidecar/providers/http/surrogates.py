"""Split surrogate pairs: half an emoji in one piece of a reply, the other half in the next.

JSON escapes such a character as two surrogates. When a provider splits them, a strict decoder fails on each half,
which would end the turn. No I/O.
"""

from __future__ import annotations

import re

_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HIGH_AT_END = re.compile(rb'(\\u[dD][89abAB][0-9a-fA-F]{2})(?=")')
_LOW_AT_START = re.compile(rb'(?<=")\\u[dD][c-fC-F][0-9a-fA-F]{2}')
_LONE = re.compile(_PAIR + rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class SurrogateJoiner:
    """Buffers the first half until the second comes."""

    def __init__(self) -> None:
        self._held = b""

    def join(self, data: bytes) -> bytes:
        """Return `data` without lone surrogates: joined when both have come, a replacement character when one is
        missing.
        """
        if self._held:
            data = _LOW_AT_START.sub(lambda low: self._held + low[0], data, count=1)
            self._held = b""
        ends = list(_HIGH_AT_END.finditer(data))
        if ends:
            self._held = ends[-1][1]
            data = data[: ends[-1].start()] + data[ends[-1].end() :]
        return _LONE.sub(lambda found: found[0] if len(found[0]) > 6 else rb"\ufffd", data)

    @property
    def is_holding(self) -> bool:
        return bool(self._held)
