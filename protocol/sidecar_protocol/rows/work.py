"""Rows of a model's work: branches of a chat, open files, patches, leave for what it does, tools and commands; and
of what the sidecar asks of the client."""

from .row import Method, Question

_CHAT = {"chatId": "tab-7"}
_PATH = {"chatId": "tab-7", "path": "src/engine.py"}
_TURN = {"chatId": "tab-7", "turnId": "t-1"}

WORK = [
    Method(
        "chat/context",
        "ChatContextParams",
        "ChatContextResult",
        "chat",
        "What the model would be sent with a prompt: every block, its tokens and its gate. Nothing changes.",
        {"chatId": "tab-7", "text": "Where did we put the looms?", "budget": 2000},
    ),
    Method(
        "chat/compact",
        "ChatCompactParams",
        "ChatCompactResult",
        "chat",
        "Let a summary stand for the oldest turns; or postpone that. Lossless: `chat/uncompact` takes it back.",
        {"chatId": "tab-7", "instructions": "Keep what was decided about cards"},
    ),
    Method(
        "chat/uncompact",
        "Key",
        "ChatUncompactResult",
        "chat",
        "Send the turns again that the newest compaction stands for.",
        _CHAT,
    ),
    Method(
        "rules/list",
        "Key",
        "RulesListResult",
        "global",
        "The instruction files that hold in a chat or project, when each was read and changed, and what it takes.",
        _CHAT,
    ),
    Method(
        "chat/fork",
        "ChatForkParams",
        "ChatOpenResult",
        "chat",
        "Make a new chat of a chat's turns up to a point, with its open files and its ledger, and open it.",
        {"chatId": "tab-7", "newChatId": "tab-8", "at": {"turnId": "t-1"}},
    ),
    Method(
        "chat/rewind",
        "ChatRewindParams",
        "ChatRewindResult",
        "chat",
        "Move the head back before a turn, or forth to a hidden one, and put files back if asked. Nothing is erased.",
        {"chatId": "tab-7", "before": {"turnId": "t-1"}, "files": "restore", "dryRun": True},
    ),
    Method(
        "files/open",
        "FilesOpenParams",
        "FilesResult",
        "chat",
        "Make a file, or what matches a glob, part of the chat's window.",
        {**_PATH, "pinned": True},
    ),
    Method("files/close", "FilesCloseParams", "FilesResult", "chat", "Take files out of the window.", _PATH),
    Method(
        "files/pin",
        "FilesPinParams",
        "FilesResult",
        "chat",
        "Keep a file open; it is opened if it is not.",
        _PATH,
    ),
    Method(
        "files/unpin",
        "FilesUnpinParams",
        "FilesResult",
        "chat",
        "Let newer files push a file out again.",
        _PATH,
    ),
    Method("files/list", "Key", "FilesResult", "chat", "The open files, with their state on disk.", _CHAT),
    Method("files/clear", "Key", "FilesResult", "chat", "Close all files, pinned ones too.", _CHAT),
    Method(
        "patches/list",
        "PatchesListParams",
        "PatchesListResult",
        "chat",
        "What tools changed, newest first.",
        _CHAT,
    ),
    Method(
        "patches/show", "PatchesShowParams", "PatchesShowResult", "chat", "Changes with their diffs.", _TURN
    ),
    Method(
        "patches/clear",
        "Key",
        "PatchesClearResult",
        "chat",
        "Empty the ledger's list. The files stay as they are.",
        _CHAT,
    ),
    Method(
        "patches/revert",
        "PatchesRevertParams",
        "PatchesChanged",
        "chat",
        "Put back what a change, a turn or all changes of a file did, unless the file was changed since.",
        {**_TURN, "dryRun": True},
    ),
    Method(
        "patches/apply",
        "PatchesApplyParams",
        "PatchesChanged",
        "chat",
        "Do again what was reverted, unless the file was changed since.",
        {**_TURN, "dryRun": True},
    ),
    Method(
        "patches/export",
        "PatchesExportParams",
        "PatchesExportResult",
        "chat",
        "All changes of a turn or of the chat as one patch that `git apply` takes, inline or to a file.",
        _TURN,
    ),
    Method(
        "git/diff",
        "GitDiffParams",
        "GitDiffResult",
        "chat",
        "What differs in the project's working tree. Runs nothing that the repository names.",
        {"chatId": "tab-7", "maxTokens": 3000},
    ),
    Method(
        "permission/answer",
        "PermissionAnswerParams",
        "PermissionOutcome",
        "global",
        "Decide what a tool call waits for. The first answer counts; a late one gets -32012.",
        {"permissionId": "perm-1", "decision": "deny_once", "feedback": "Use the test folder instead."},
    ),
    Method(
        "input/answer",
        "InputAnswerParams",
        "InputOutcome",
        "global",
        "Answer what the model asked. The first answer counts; a late one gets -32012.",
        {"inputId": "in-1", "action": "accept", "values": {"answer": "Python 3.11"}},
    ),
    Method(
        "permissionRules/list",
        "PermissionRulesListParams",
        "PermissionRulesResult",
        "chat",
        "The rules that decide without asking, and where each comes from.",
        _CHAT,
    ),
    Method(
        "permissionRules/set",
        "PermissionRulesSetParams",
        "PermissionRulesResult",
        "chat",
        "Add a rule, or change the effect of one.",
        {"chatId": "tab-7", "scope": "chat", "effect": "allow", "rule": "run(make test)"},
    ),
    Method(
        "permissionRules/remove",
        "PermissionRulesRemoveParams",
        "PermissionRulesResult",
        "chat",
        "Take a rule back. Idempotent.",
        {"chatId": "tab-7", "id": "rule-1"},
    ),
    Method(
        "tools/list",
        "ToolsListParams",
        "ToolsListResult",
        "global",
        "The tools that a model may call, from where and how often used; MCP servers and why one is missing.",
        _CHAT,
    ),
    Method(
        "tools/offer",
        "ToolsOfferParams",
        "ToolsOfferResult",
        "connection",
        "Replace the tools of the app that a model may call, from the next provider call on.",
        {
            "tools": [
                {
                    "name": "show_file",
                    "description": "Shows a file to the user in the editor.",
                    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
                    "kind": "other",
                }
            ]
        },
    ),
    Method(
        "commands/list",
        "CommandsListParams",
        "CommandsListResult",
        "global",
        "The commands that a prompt may be, for completion.",
        _CHAT,
    ),
]

_OF_TURN = {"sessionId": "sc-tab-7-bf133f99bd6e5d06", "chatId": "tab-7", "turnId": "t-1"}

QUESTIONS = [
    Question(
        "permission/request",
        "PermissionRequest",
        "PermissionAnswer",
        "permissions",
        "May a tool call be carried out? Cancelled when it is decided elsewhere.",
        {
            **_OF_TURN,
            "permissionId": "perm-1",
            "itemId": "i-2",
            "kind": "run",
            "title": "Run make test",
            "subject": "make test",
            "changes": [],
            "options": [
                {"decision": "allow_once", "label": "Allow"},
                {"decision": "allow_chat", "label": "Allow in this chat", "rule": "run(make test)"},
                {"decision": "deny_once", "label": "Deny"},
            ],
        },
    ),
    Question(
        "input/request",
        "InputRequest",
        "InputAnswer",
        "input",
        "The model asks the person something. Cancelled when it is answered elsewhere.",
        {
            **_OF_TURN,
            "inputId": "in-1",
            "message": "Which version of Python?",
            "schema": {
                "type": "object",
                "properties": {"answer": {"type": "string"}},
                "required": ["answer"],
            },
        },
    ),
    Question(
        "tool/call",
        "ToolCallRequest",
        "ToolCallResult",
        "tools",
        "The model calls a tool of the app. Cancelled when the turn is, or when its time is over.",
        {**_OF_TURN, "itemId": "i-3", "name": "show_file", "arguments": {"path": "src/engine.py"}},
    ),
    Question(
        "fs/readBuffer",
        "ReadBufferRequest",
        "ReadBufferResult",
        "buffers",
        "The unsaved text of a file that may be open in the app's editor.",
        {
            "sessionId": "sc-tab-7-bf133f99bd6e5d06",
            "chatId": "tab-7",
            "path": "/home/ada/engine/src/engine.py",
        },
    ),
]
