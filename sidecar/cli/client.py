"""How commands reach a sidecar: spawn one with the given options, and find a chat. Knows no command."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from sidecar_client import Chat, RpcError, Sidecar
from sidecar_protocol.limits import MAX_ID_BYTES
from sidecar_protocol.messages import Status, Turn

from sidecar import __version__

from .errors import CommandFailed

if TYPE_CHECKING:
    from .terminal.questions import Questions

T = TypeVar("T")

TURN_PAGE = 200
"""Turns asked for at a time."""

_SESSION_ID = re.compile(r"sc-[a-z0-9-]+-[0-9a-f]{16}")


class ChatStart(msgspec.Struct, frozen=True):
    """The start of a chat; an existing one keeps its project, unless this one was `chosen` explicitly."""

    project: str | None
    chosen: bool
    mode: str | None = None


def spawn(
    options: Namespace,
    questions: Questions | None = None,
    on_status: Callable[[Status], None] | None = None,
) -> AbstractAsyncContextManager[Sidecar]:
    """Spawn a sidecar with the data and the configuration that the command line names.

    Without `questions` the client declares that it cannot ask the user. `on_status` gets what belongs to no chat.
    """
    return Sidecar.spawn(
        data_dir=_data_dir(options),
        config=_config_file(options),
        model=getattr(options, "model", None),
        client_name="sidecar-cli",
        client_version=__version__,
        on_permission=questions.permission if questions else None,
        on_input=questions.input if questions else None,
        status=on_status,
    )


def run(
    options: Namespace,
    command: Callable[[Sidecar], Awaitable[T]],
    on_status: Callable[[Status], None] | None = None,
) -> T:
    """Run `command` with a sidecar."""

    async def session() -> T:
        async with spawn(options, on_status=on_status) as app:
            return await command(app)

    return anyio.run(session)


async def find_chat(app: Sidecar, name: str, turns: int = 1) -> Chat:
    """Return the chat called `name`, by its id or its session id; never create one."""
    check_chat_id(name, "CHAT")
    try:
        return await _open_known(app, name, turns)
    except RpcError as error:
        if error.name not in ("not_found", "deleted"):
            raise
        raise CommandFailed(
            f"There is no chat {name!r}.\n  `sidecar chats` lists those that there are.", 1
        ) from None


async def open_chat(app: Sidecar, name: str, turns: int, start: ChatStart) -> Chat:
    """Return the chat called `name`; create it when there is none."""
    check_chat_id(name, "--chat")
    config = {"mode": start.mode} if start.mode else None
    if not start.chosen:
        try:
            return await _open_known(app, name, turns, config)
        except RpcError as error:
            if error.name not in ("not_found", "deleted"):
                raise
    return await app.chat(name, project_path=start.project, config=config, turns=turns)


async def last_turns(chat: Chat, count: int | None) -> list[Turn]:
    """The newest `count` turns, oldest first; all without a count."""
    turns: list[Turn] = []
    before: str | None = None
    while count is None or len(turns) < count:
        wanted = TURN_PAGE if count is None else min(TURN_PAGE, count - len(turns))
        page = await chat.history(before=before, limit=wanted)
        turns = page.turns + turns
        before = page.before
        if before is None or not page.turns:
            break
    return turns


def check_chat_id(name: str, field: str) -> None:
    if not name or len(name.encode(errors="surrogatepass")) > MAX_ID_BYTES:
        raise CommandFailed(f"{field}: a chat's id has 1 to {MAX_ID_BYTES} bytes; give another.")


def existing_folder(path: str | None, field: str) -> str | None:
    """Return the absolute path of an existing folder."""
    if path is None:
        return None
    found = Path(path).expanduser()
    if not found.is_dir():
        raise CommandFailed(f"{field}: {path} is not a folder; give one that exists.")
    return str(found.absolute())


async def _open_known(app: Sidecar, name: str, turns: int, config: dict[str, Any] | None = None) -> Chat:
    if _SESSION_ID.fullmatch(name):
        try:
            return await app.chat(session_id=name, if_missing="fail", config=config, turns=turns)
        except RpcError as error:
            if error.name != "not_found":
                raise
    return await app.chat(name, if_missing="fail", config=config, turns=turns)


def _data_dir(options: Namespace) -> str | None:
    given: str | None = getattr(options, "data_dir", None)
    return given if given in (None, ":memory:") else os.path.expanduser(given)


def _config_file(options: Namespace) -> str | None:
    given: str | None = getattr(options, "config", None)
    if given is not None and not Path(given).expanduser().is_file():
        raise CommandFailed(f"--config: there is no file {given}; give one that exists.")
    return given
