"""The result of one check of the installation."""

from __future__ import annotations

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True):
    name: str
    status: Literal["ok", "warn", "fail"]
    code: str
    message: str
    action: str | None = None
