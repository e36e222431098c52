"""Which engines can answer a chat: Sidecar's own, and other agents."""

from __future__ import annotations

from typing import Literal

from .base import Wire

__all__ = ["EngineInfo", "EnginesListResult"]


class EngineInfo(Wire, kw_only=True, frozen=True):
    """An engine that a chat can have, installed or not."""

    name: str
    """The value of `engine` in a chat's configuration."""
    title: str
    """Its name for people."""
    installed: bool
    """Whether its program is there."""
    ready: bool
    """Whether a turn can be tried: it is installed, and not known to lack a login. Nothing is started."""
    logged_in: bool | None = None
    """Whether a key or a stored login was found; absent when that cannot be seen without starting it."""
    path: str | None = None
    """The program that is started."""
    code: Literal["not_installed", "no_login"] | None = None
    """Why it is not ready, by name; an app has its own text for it."""
    reason: str | None = None
    """The same in English, with what to do."""
    install: str | None = None
    """The command that installs it."""


class EnginesListResult(Wire, kw_only=True, frozen=True):
    items: list[EngineInfo]
    """The engines: Sidecar's own first, then agents by name."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""
