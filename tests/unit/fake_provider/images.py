"""The smallest picture there is, in the shapes that the APIs want it in."""

from __future__ import annotations


class PNG:
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    type = "image/png"
    url = f"data:{type};base64,{data}"
