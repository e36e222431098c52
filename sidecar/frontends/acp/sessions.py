"""Handlers of `session/*` besides prompts: which chats the editor follows, and how they are configured."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
from sidecar_protocol.errors import RpcError
from sidecar_protocol.peer import Call

from ...chat.journal.identity import ChatAddress
from ...chat.sessions.chats import Chats
from ...chat.sessions.session import Session
from ...model import JsonObject
from ...model.chats import Chat, ChatQuery, EffectiveConfig
from ...model.failures import Failure, invalid_param
from ...providers.base import ModelEntry
from ...rpc.dispatch import Handler
from ...rpc.wire import MessageWriter
from ...system.lazy import lazy_module, load
from ..base import Host
from . import options
from .client import AcpClientApp
from .messages import (
    AcpResult,
    Empty,
    ExistingParams,
    ListParams,
    SessionParams,
    SetModeParams,
    SetOptionParams,
    SetupParams,
    Update,
)
from .notices import Words
from .sink import AcpAttachment, AcpAttachments, AcpSink, read_texts, replay
from .updates import Audience, Updates, iso_time, session_info
from .updates_v2 import UpdatesV2

if TYPE_CHECKING:
    from ...chat.actions import commands
else:
    commands = lazy_module("sidecar.chat.actions.commands")

logger = logging.getLogger(__name__)

PAGE = 50
"""Sessions of one page of `session/list`."""

ANNOUNCE_S = 0.3
"""The first prompt does not wait for what a menu needs: the modules of all commands, and every provider's models."""

SENT_S = 5.0
"""How long a question waits for the client to read what led to it; then it is asked all the same."""


class Sessions:
    """The sessions of one connection. `prompts_sent` are the client's own prompts, and the commands that some are."""

    def __init__(self, host: Host, wire: MessageWriter, attach: Callable[..., AcpAttachments]) -> None:
        self.version = 1
        self.prompts_sent: dict[str, str] = {}
        self.attachments = attach(wire, self._make_sink)
        self.client: AcpClientApp | None = None
        self._host = host
        self._wire = wire
        self._models: list[ModelEntry] = []
        self._models_asked = False

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def chats(self) -> Chats:
        return await self._host.opened_chats()

    async def followed(self, session_id: str) -> AcpAttachment:
        """The attachment of a session; one that exists and is not followed yet is followed from now on."""
        session = await (await self.chats()).existing_session(ChatAddress(session_id=session_id))
        attachment = self.attachments.get(session)
        if attachment is None:
            attachment = self.attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
            attachment.release()
        return attachment

    async def find(self, session_id: str) -> Session:
        return await (await self.chats()).existing_session(ChatAddress(session_id=session_id))

    async def wait_sent(self, session_id: str) -> None:
        attachment = self.attachments.find(session_id)
        if attachment:
            with anyio.move_on_after(SENT_S):
                await attachment.wait_sent(attachment.session.recorder.feed.last_seq)

    def project(self, session_id: str) -> str | None:
        attachment = self.attachments.find(session_id)
        return attachment.session.chat.project_path if attachment else None

    def show(self, session_id: str, update: Update) -> None:
        attachment = self.attachments.find(session_id)
        if attachment:
            attachment.sink.send_updates([update])

    async def texts(self, refs: Sequence[str]) -> dict[str, str]:
        return await read_texts((await self.chats()).store, refs) if refs else {}

    def models_changed(self) -> None:
        """Ask for the models again, once they were asked for."""
        self._models_asked = False

    def notify(self, words: Words) -> None:
        """Show a notice that belongs to no chat in every session, if the client shows notices."""
        for attachment in self.attachments.all():
            attachment.sink.send_updates(attachment.sink.updates.notice(words))

    def fail_all(self, error: RpcError) -> None:
        """End every prompt that waits, because the connection to the chats is lost."""
        for attachment in self.attachments.all():
            attachment.sink.fail(error)
        self.attachments.detach_all()

    def _make_sink(self, session: Session, epoch: str) -> AcpSink:
        assert self.client is not None
        kind = Updates if self.version == 1 else UpdatesV2
        audience = Audience(
            self.version == 2 or self.client.offers("session", "notices"),
            self.version == 2 or self.client.offers("session", "compaction"),
            self.prompts_sent,
        )
        updates = kind(audience, session.chat.project_path, self._options_of)
        return AcpSink(session, epoch, self._wire, updates)

    async def _new(self, call: Call, params: SetupParams) -> AcpResult:
        chats = await self.chats()
        chat_id = _own_text(params, "chatId")
        namespace = _own_text(params, "namespace")
        if chat_id is None and not chats.has_default(ChatAddress()):
            chat_id = f"acp-{secrets.token_hex(8)}"
        session = await self._open(ChatAddress(chat_id, params.cwd, namespace), params, create=True)
        if self.attachments.get(session) is None:
            self.attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
        else:
            self._require(session).hold()
        return {"sessionId": session.chat.key.session_id, **self._answered(call, session)}

    async def _load(self, call: Call, params: ExistingParams) -> AcpResult:
        session = await self._open(
            ChatAddress(None, params.cwd, None, params.session_id), params, create=False
        )
        await self._replay(session, params)
        return self._answered(call, session)

    async def _resume(self, call: Call, params: ExistingParams) -> AcpResult:
        session = await self._open(
            ChatAddress(None, params.cwd, None, params.session_id), params, create=False
        )
        if params.replay_from is not None:
            if params.replay_from.get("type") != "start":
                raise invalid_param("replayFrom.type", "start")
            await self._replay(session, params)
        elif self.attachments.get(session) is None:
            self.attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
        else:
            self._require(session).hold()
        if self.version == 2:
            sink = self._require(session).sink
            assert isinstance(sink.updates, UpdatesV2)
            sink.send_updates([sink.updates.snapshot(session.chat.state)])
        return self._answered(call, session)

    async def _replay(self, session: Session, params: ExistingParams) -> None:
        """Follow the chat from now on, after sending what was there; a client may name what it has seen of it."""
        before = self.attachments.get(session)
        attachment = self.attachments.attach(session, session.chat.epoch, session.recorder.feed.last_seq)
        attachment.sink.watches = before.sink.watches if before else []
        try:
            await replay(attachment, self._wire, _seen(params.own.get("after"), session))
        except BaseException:
            attachment.release()
            raise

    async def _open(self, address: ChatAddress, params: SetupParams, *, create: bool) -> Session:
        changes: JsonObject = {"extraFolders": params.additional_directories or []}
        if params.mcp_servers is not None:
            changes["mcpServers"] = [
                _server(server, f"mcpServers[{at}]") for at, server in enumerate(params.mcp_servers)
            ]
        with anyio.CancelScope(shield=True):
            chats = await self.chats()
            opened = await chats.open(address, create=create, changes=changes)
            await opened.session.refresh_unless_owner()
        return opened.session

    def _answered(self, call: Call, session: Session) -> AcpResult:
        """What the answers to `session/new`, `load` and `resume` share. All updates follow the answer."""
        attachment = self._require(session)

        def announce() -> None:
            if session.chat.title:
                info = session_info(session.chat.title, session.chat.last_activity)
                attachment.sink.send_updates([info])
            attachment.release()
            session.run_in_background(self._announce, attachment)

        call.after_answer(announce)
        shown: JsonObject = {"configOptions": self._options(session)}
        if self.version == 1:
            shown["modes"] = options.modes(session.config)
        key = session.chat.key
        about = {"chatId": key.chat_id, "epoch": session.chat.epoch, "seq": attachment.cursor}
        return {**shown, "_meta": {"sidecar": about}}

    def _require(self, session: Session) -> AcpAttachment:
        attachment = self.attachments.get(session)
        assert attachment is not None
        return attachment

    def _options(self, session: Session) -> list[JsonObject]:
        return options.options(self.version, session.config, self._models)

    def _options_of(self, config: JsonObject) -> list[JsonObject]:
        """The choices by the configuration of an event: another process may have changed it."""
        return options.options(self.version, msgspec.convert(config, EffectiveConfig), self._models)

    async def _announce(self, attachment: AcpAttachment) -> None:
        """Send the commands and, once they are known, the models that can be chosen."""
        await anyio.sleep(ANNOUNCE_S)
        await anyio.to_thread.run_sync(load, commands)
        listed = available_commands(self.version)
        attachment.sink.send_updates(
            [{"sessionUpdate": "available_commands_update", "availableCommands": listed}]
        )
        if not self._models_asked:
            self._models_asked = True
            await self._list_models()

    async def _list_models(self) -> None:
        """Ask the providers for their models, and send the choices of each session when they are known."""
        try:
            self._models = await self._host.system.models(None)
        except Failure as failure:
            logger.info("the models are not known", extra={"error": failure.message})
            return
        for attachment in self.attachments.all():
            choices = self._options(attachment.session)
            attachment.sink.send_updates(
                [{"sessionUpdate": "config_option_update", "configOptions": choices}]
            )

    async def _list(self, call: Call, params: ListParams) -> AcpResult:
        chats = await self.chats()
        query = ChatQuery(project_path=params.cwd, archived=False, cursor=params.cursor, limit=PAGE)
        found, cursor = await chats.page(query)
        listed = [_session_info(chat) for chat in found if chat.project_path]
        return {"sessions": listed, **({"nextCursor": cursor} if cursor else {})}

    async def _close(self, call: Call, params: SessionParams) -> AcpResult:
        try:
            session = await self.find(params.session_id)
        except Failure as failure:
            if failure.name in ("not_found", "deleted"):
                return Empty
            raise
        attachment = self.attachments.get(session)
        with anyio.CancelScope(shield=True):
            ended = await session.cancel(None, "clear")
        if attachment:
            await attachment.wait_sent(max(ended.end_seq or 0, session.recorder.feed.last_seq))
            self.attachments.detach(params.session_id)
        session.recorder.feed.rest()
        session.rest()
        session.end_in_background()
        return Empty

    async def _delete(self, call: Call, params: SessionParams) -> AcpResult:
        chats = await self.chats()
        attachment = self.attachments.find(params.session_id)
        with anyio.CancelScope(shield=True):
            await chats.delete(ChatAddress(session_id=params.session_id), self.attachments.detach)
        if attachment:
            attachment.sink.send_deletion(attachment.cursor)
        return Empty

    async def _set_mode(self, call: Call, params: SetModeParams) -> AcpResult:
        mode = options.checked_mode(params.mode_id, "modeId")
        await self._configure(params.session_id, {"mode": mode})
        return Empty

    async def _set_option(self, call: Call, params: SetOptionParams) -> AcpResult:
        session = await self.find(params.session_id)
        change = options.change(self._options(session), params.config_id, params.value)
        session = await self._configure(params.session_id, change)
        return {"configOptions": self._options(session)}

    async def _configure(self, session_id: str, change: Any) -> Session:
        chats = await self.chats()
        session = await self.find(session_id)
        with anyio.CancelScope(shield=True):
            await session.configure(chats.checked_config(change))
        return session


def available_commands(version: int) -> list[Update]:
    """The slash commands."""
    kind = {"type": "command"} if version == 2 else {}
    field = {"type": "text"} if version == 2 else {}
    return [
        {
            **kind,
            "name": command.name,
            "description": command.description,
            **({"input": {**field, "hint": command.arguments}} if command.arguments else {}),
        }
        for command in commands.COMMANDS.values()
    ]


def _own_text(params: SetupParams, name: str) -> str | None:
    value = params.own.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid_param(f"_meta.sidecar.{name}", "a text")
    return value


def _session_info(chat: Chat) -> JsonObject:
    folders = chat.config.get("extraFolders") or []
    about = {"chatId": chat.key.chat_id, "epoch": chat.epoch, "seq": chat.last_seq}
    return {
        "sessionId": chat.key.session_id,
        "cwd": chat.project_path,
        "title": chat.title,
        "updatedAt": iso_time(chat.last_activity),
        **({"additionalDirectories": folders} if folders else {}),
        "_meta": {"sidecar": about},
    }


def _seen(after: Any, session: Session) -> int:
    """The seq after which a replay begins: what the client has seen, if it is of this chat."""
    if not isinstance(after, dict) or after.get("epoch") != session.chat.epoch:
        return 0
    seq = after.get("seq")
    return seq if type(seq) is int and 0 <= seq <= session.recorder.feed.last_seq else 0


def _server(server: JsonObject, field: str) -> JsonObject:
    """An MCP server as chats are configured with it: pairs become objects."""
    kind = server.get("type", "stdio")
    if kind not in ("stdio", "http"):
        raise invalid_param(f"{field}.type", "stdio or http")
    members = {"stdio": ("name", "command", "args"), "http": ("name", "url")}[kind]
    pairs = {"stdio": "env", "http": "headers"}[kind]
    found = {name: server[name] for name in members if server.get(name) is not None}
    if server.get(pairs):
        found[pairs] = _pairs(server[pairs], f"{field}.{pairs}")
    return found


def _pairs(given: Any, field: str) -> dict[str, str]:
    try:
        pairs = msgspec.convert(given, list[dict[str, Any]])
        return {msgspec.convert(pair["name"], str): msgspec.convert(pair["value"], str) for pair in pairs}
    except (msgspec.ValidationError, KeyError):
        raise invalid_param(field, "a list of objects with `name` and `value`, which are texts") from None
