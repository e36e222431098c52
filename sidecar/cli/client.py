"""How commands reach a sidecar: spawn one with the options given, and name a chat. Knows no command."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import anyio
from sidecar_client import Chat, RpcError, Sidecar

from sidecar import __version__

from .errors import Failed

T = TypeVar("T")

MAX_CHAT_ID_BYTES = 512

_SESSION_ID = re.compile(r"sc-[a-z0-9-]+-[0-9a-f]{16}")


def spawn(options: Namespace) -> AbstractAsyncContextManager[Sidecar]:
    """A sidecar with the data and the configuration that the command line names."""
    return Sidecar.spawn(
        data_dir=_data_dir(options),
        config=_config_file(options),
        model=getattr(options, "model", None),
        client_name="sidecar-cli",
        client_version=__version__,
    )


def run(options: Namespace, command: Callable[[Sidecar], Awaitable[T]]) -> T:
    """Run `command` with a sidecar."""

    async def session() -> T:
        async with spawn(options) as app:
            return await command(app)

    return anyio.run(session)


async def find_chat(app: Sidecar, name: str, turns: int = 1) -> Chat:
    """The chat called `name`, by its id or its session id; none is made."""
    check_chat_id(name, "CHAT")
    try:
        return await _open_known(app, name, turns)
    except RpcError as error:
        if error.name not in ("not_found", "deleted"):
            raise
        raise Failed(
            f"There is no chat {name!r}.\n  `sidecar chats` lists those that there are.", 1
        ) from None


async def open_chat(app: Sidecar, name: str, turns: int, project: str | None) -> Chat:
    """The chat called `name`; made when there is none."""
    check_chat_id(name, "--chat")
    if _SESSION_ID.fullmatch(name) and project is None:
        try:
            return await app.chat(session_id=name, if_missing="fail", turns=turns)
        except RpcError as error:
            if error.name not in ("not_found", "deleted"):
                raise
    return await app.chat(name, project_path=project, turns=turns)


def check_chat_id(name: str, field: str) -> None:
    if not name or len(name.encode(errors="surrogatepass")) > MAX_CHAT_ID_BYTES:
        raise Failed(f"{field}: a chat's id has 1 to {MAX_CHAT_ID_BYTES} bytes; give another.")


def folder(path: str | None, field: str) -> str | None:
    """The absolute path of a folder that is there."""
    if path is None:
        return None
    found = Path(path).expanduser()
    if not found.is_dir():
        raise Failed(f"{field}: {path} is not a folder; give one that exists.")
    return str(found.absolute())


async def _open_known(app: Sidecar, name: str, turns: int) -> Chat:
    if _SESSION_ID.fullmatch(name):
        try:
            return await app.chat(session_id=name, if_missing="fail", turns=turns)
        except RpcError as error:
            if error.name != "not_found":
                raise
    return await app.chat(name, if_missing="fail", turns=turns)


def _data_dir(options: Namespace) -> str | None:
    given: str | None = getattr(options, "data_dir", None)
    return given if given in (None, ":memory:") else os.path.expanduser(given)


def _config_file(options: Namespace) -> str | None:
    given: str | None = getattr(options, "config", None)
    if given is not None and not Path(given).expanduser().is_file():
        raise Failed(f"--config: there is no file {given}; give one that exists.")
    return given
