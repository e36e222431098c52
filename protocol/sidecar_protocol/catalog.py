"""THE TABLE: a method exists because it stands here. Dispatch, schema, reference page and client types follow it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from . import messages as m
from .messages.base import Empty, Json, Key, Wire

VERSIONS = [1]
"""The versions of the contract that this package speaks."""

_NO_PARAMS: Mapping[str, Any] = MappingProxyType({})

Scope = Literal["connection", "chat", "global"]


class Method(msgspec.Struct, frozen=True):
    """A request that the client may make. `early` ones are answered before `initialize`."""

    name: str
    params: type[Wire]
    result: type[Wire] | type[Json]
    scope: Scope
    summary: str
    example: Mapping[str, Any] = _NO_PARAMS
    early: bool = False
    since: int = 1


class Notice(msgspec.Struct, frozen=True):
    """A notification, and who sends it."""

    name: str
    params: type[Wire]
    sender: Literal["client", "sidecar"]
    summary: str
    since: int = 1


_CHAT = {"chatId": "tab-7"}

_METHODS = [
    Method(
        "initialize",
        m.InitializeParams,
        m.InitializeResult,
        "connection",
        "Say who you are and agree on a version. Answered before the database is opened.",
        {"protocol": "sidecar", "versions": [1], "client": {"name": "my-app", "version": "1.0"}},
        early=True,
    ),
    Method(
        "ping",
        Empty,
        m.PingResult,
        "connection",
        "Is it alive, since when, and how many requests are under way.",
        early=True,
    ),
    Method("rpc.discover", Empty, dict, "connection", "The OpenRPC document of this contract.", early=True),
    Method(
        "chat/open",
        m.ChatOpenParams,
        m.ChatOpenResult,
        "chat",
        "Open a chat: resume its session, or create one when there is none. Events follow the result.",
        {"chatId": "tab-7", "projectPath": "/home/ada/engine", "after": "tail"},
    ),
    Method(
        "chat/close",
        Key,
        m.ChatCloseResult,
        "chat",
        "Detach: no more events here. A running turn goes on.",
        _CHAT,
    ),
    Method(
        "chat/delete",
        Key,
        m.ChatDeleteResult,
        "chat",
        "Purge a chat's text and blobs and leave a tombstone. Idempotent.",
        _CHAT,
    ),
    Method(
        "chat/rename",
        m.ChatRenameParams,
        m.ChatChanged,
        "chat",
        "Give a chat a title; null makes it automatic again.",
        {"chatId": "tab-7", "title": "Punch cards"},
    ),
    Method(
        "chat/archive",
        m.ChatArchiveParams,
        m.ChatChanged,
        "chat",
        "Take a chat out of the usual list, or put it back.",
        {"chatId": "tab-7", "archived": True},
    ),
    Method(
        "chat/list",
        m.ChatListParams,
        m.ChatListResult,
        "global",
        "The chats, newest activity first.",
        {"limit": 20},
    ),
    Method(
        "chat/search",
        m.ChatSearchParams,
        m.ChatSearchResult,
        "global",
        "Find words in what was said, in every chat.",
        {"query": "punch cards", "limit": 5},
    ),
    Method(
        "chat/history",
        m.ChatHistoryParams,
        m.ChatHistoryResult,
        "chat",
        "A page of turns, before, after or around a place.",
        {"chatId": "tab-7", "limit": 10},
    ),
    Method(
        "chat/export",
        m.ChatExportParams,
        m.ChatExportResult,
        "chat",
        "The chat as JSON Lines (imports as it was) or Markdown, inline or to a file.",
        {"chatId": "tab-7", "format": "markdown"},
    ),
    Method(
        "chat/import",
        m.ChatImportParams,
        m.ChatImportResult,
        "chat",
        "Make a chat from an export or from plain turns, a JSON object a line.",
        {"chatId": "imported", "data": '{"role":"user","text":"Hello"}\n{"role":"assistant","text":"Hi."}\n'},
    ),
    Method(
        "chat/configure",
        m.ChatConfigureParams,
        m.ChatConfigureResult,
        "chat",
        "Set or clear (null) keys of the chat's configuration.",
        {"chatId": "tab-7", "set": {"model": "echo:", "meta": {"colour": "green"}}},
    ),
    Method(
        "prompt/send",
        m.PromptSendParams,
        m.PromptSendResult,
        "chat",
        "Send a prompt. Its turn starts, waits in the queue, or steers the running one.",
        {"chatId": "tab-7", "promptId": "p-1", "text": "Hello there"},
    ),
    Method("prompt/list", Key, m.QueueResult, "chat", "The prompts that wait.", _CHAT),
    Method(
        "prompt/edit",
        m.PromptEditParams,
        m.QueueResult,
        "chat",
        "Change a prompt that still waits.",
        {"chatId": "tab-7", "promptId": "p-2", "content": [{"type": "text", "text": "Hello again"}]},
    ),
    Method(
        "prompt/remove",
        m.PromptRemoveParams,
        m.QueueResult,
        "chat",
        "Take a prompt out of the queue.",
        {"chatId": "tab-7", "promptId": "p-2"},
    ),
    Method("prompt/resume", Key, m.QueueResult, "chat", "Let a paused queue run again.", _CHAT),
    Method(
        "turn/cancel",
        m.TurnCancelParams,
        m.TurnCancelResult,
        "chat",
        "End the running turn. Answered after its last event is on the wire.",
        {"chatId": "tab-7", "queue": "pause"},
    ),
    Method(
        "turn/retry",
        m.TurnRetryParams,
        m.PromptSendResult,
        "chat",
        "Regenerate a turn from its start, or go on with an unfinished one from here.",
        {"chatId": "tab-7", "promptId": "p-3", "from": "start"},
    ),
    Method(
        "events/read",
        m.EventsReadParams,
        m.EventsReadResult,
        "chat",
        "Stored events after a cursor, of any chat, open or not. Takes no lease.",
        {"chatId": "tab-7", "after": {"epoch": "3f1c9a52", "seq": 0}, "limit": 3},
    ),
    Method(
        "blob/put",
        m.BlobPutParams,
        m.BlobPutResult,
        "global",
        "Keep some bytes, to name them in a prompt's content.",
        {"data": "aGVsbG8=", "mimeType": "text/plain", "name": "hello.txt"},
    ),
    Method(
        "blob/read",
        m.BlobReadParams,
        m.BlobReadResult,
        "global",
        "Read kept bytes, or a range of them.",
        {"blobId": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "length": 4},
    ),
    Method(
        "providers/list",
        Empty,
        m.ProvidersListResult,
        "global",
        "The providers, where each is, and where its key comes from: the first thing that a settings page asks.",
    ),
    Method(
        "providers/configure",
        m.ProvidersConfigureParams,
        m.ProvidersConfigureResult,
        "global",
        "Give a provider its key, or take it back. The answer never has the key; `status` `models` follows.",
        {"provider": "openai", "apiKey": "sk-example-1234", "store": "memory"},
    ),
    Method(
        "providers/test",
        m.ProvidersTestParams,
        m.ProvidersTestResult,
        "global",
        "Ask a provider for its models: whether address and key are right, and if not, why.",
        {"provider": "openai"},
    ),
    Method("models/list", m.ModelsListParams, m.ModelsListResult, "global", "The models that can be chosen."),
    Method(
        "settings/read",
        m.SettingsReadParams,
        m.SettingsReadResult,
        "global",
        "Every setting with its value and the layer that it comes from.",
    ),
    Method(
        "settings/write",
        m.SettingsWriteParams,
        m.SettingsReadResult,
        "global",
        "Change settings in the user's or the project's file; comments and order survive.",
        {"scope": "user", "set": {"model": "echo:"}},
    ),
    Method(
        "project/trust",
        m.ProjectTrustParams,
        m.ProjectTrustResult,
        "global",
        "Let a project's own configuration take part in what runs code, or stop it.",
        {"path": "/home/ada/engine", "trusted": True},
    ),
    Method(
        "stats/read", m.StatsReadParams, m.StatsReadResult, "global", "Figures of a chat, a project or all."
    ),
    Method(
        "doctor/run",
        Empty,
        m.DoctorRunResult,
        "global",
        "Check the installation: ok, warn or fail, and what to do.",
    ),
    Method(
        "doctor/report",
        m.DoctorReportParams,
        m.DoctorReportResult,
        "global",
        "Write a zip for a bug report.",
        {"path": "/tmp/sidecar-report.zip", "redact": True},
    ),
    Method(
        "shutdown",
        m.ShutdownParams,
        m.ShutdownResult,
        "connection",
        "End turns, commit, and say the state of every chat. `exit` follows.",
        {"graceMs": 0},
    ),
]

METHODS: dict[str, Method] = {method.name: method for method in _METHODS}

NOTIFICATIONS: dict[str, Notice] = {
    notice.name: notice
    for notice in [
        Notice("exit", Empty, "client", "Leave now."),
        Notice(
            "$/cancelRequest",
            m.CancelRequestParams,
            "client",
            "The request answers -32800 unless it has committed.",
        ),
        Notice("event", m.Event, "sidecar", "Something happened in a chat."),
        Notice("status", m.Status, "sidecar", "Something happened that belongs to no chat."),
    ]
}
