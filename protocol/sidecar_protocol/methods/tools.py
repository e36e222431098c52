"""Methods for tools and their effects: branches of a chat, open files, patches, permissions, tools and commands; and
the requests that the sidecar sends to the client."""

from .base import Method, Question

_CHAT = {"chatId": "tab-7"}
_PATH = {"chatId": "tab-7", "path": "src/engine.py"}
_TURN = {"chatId": "tab-7", "turnId": "t-1"}

TOOLS = [
    Method(
        "chat/context",
        "ChatContextParams",
        "ChatContextResult",
        "chat",
        "What the model would be sent with a prompt, or was sent with a turn: every block, its tokens and its gate.",
        {"chatId": "tab-7", "text": "Where did we put the looms?", "budget": 2000},
    ),
    Method(
        "chat/compact",
        "ChatCompactParams",
        "ChatCompactResult",
        "chat",
        "Replace the oldest turns in the context by a summary, or postpone that. Lossless: `chat/uncompact` undoes it.",
        {"chatId": "tab-7", "instructions": "Keep what was decided about cards"},
    ),
    Method(
        "chat/uncompact",
        "Key",
        "ChatUncompactResult",
        "chat",
        "Undo the newest compaction: its turns are sent again.",
        _CHAT,
    ),
    Method(
        "rules/list",
        "Key",
        "RulesListResult",
        "global",
        "The instruction files that apply in a chat or project, when each was read and changed, and its tokens.",
        _CHAT,
    ),
    Method(
        "chat/fork",
        "ChatForkParams",
        "ChatOpenResult",
        "chat",
        "Create a chat from another chat's turns up to one of them, with open files and recorded changes, and open it.",
        {"chatId": "tab-7", "newChatId": "tab-8", "at": {"turnId": "t-1"}},
    ),
    Method(
        "chat/rewind",
        "ChatRewindParams",
        "ChatRewindResult",
        "chat",
        "Go back to before a turn, or forward to a hidden one, and restore files if asked. Nothing is erased.",
        {"chatId": "tab-7", "before": {"turnId": "t-1"}, "files": "restore", "dryRun": True},
    ),
    Method(
        "files/open",
        "FilesOpenParams",
        "FilesResult",
        "chat",
        "Open a file, or what matches a glob: it becomes part of the chat's context.",
        {**_PATH, "pinned": True},
    ),
    Method(
        "files/close",
        "FilesCloseParams",
        "FilesResult",
        "chat",
        "Close files: they are no longer part of the context.",
        _PATH,
    ),
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
        "Unpin a file: newer files may replace it again.",
        _PATH,
    ),
    Method("files/list", "Key", "FilesResult", "chat", "The open files, with their state on disk.", _CHAT),
    Method("files/clear", "Key", "FilesResult", "chat", "Close all files, pinned ones too.", _CHAT),
    Method(
        "patches/list",
        "PatchesListParams",
        "PatchesListResult",
        "chat",
        "The recorded changes of tools, newest first.",
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
        "Remove all recorded changes from the list. The files do not change.",
        _CHAT,
    ),
    Method(
        "patches/revert",
        "PatchesRevertParams",
        "PatchesChanged",
        "chat",
        "Revert a change, a turn or all changes of a file, unless the file was changed since.",
        {**_TURN, "dryRun": True},
    ),
    Method(
        "patches/apply",
        "PatchesApplyParams",
        "PatchesChanged",
        "chat",
        "Apply reverted changes again, unless the file was changed since.",
        {**_TURN, "dryRun": True},
    ),
    Method(
        "patches/export",
        "PatchesExportParams",
        "PatchesExportResult",
        "chat",
        "All changes of a turn or of the chat as one patch for `git apply`, in the result or in a file.",
        _TURN,
    ),
    Method(
        "git/diff",
        "GitDiffParams",
        "GitDiffResult",
        "chat",
        "The git diff of the project's working tree. Runs nothing that the repository configures.",
        {"chatId": "tab-7", "maxTokens": 3000},
    ),
    Method(
        "permission/answer",
        "PermissionAnswerParams",
        "PermissionOutcome",
        "global",
        "Answer a permission request. The first answer counts; a late one gets -32012.",
        {
            **_CHAT,
            "permissionId": "perm-1",
            "decision": "deny_once",
            "feedback": "Use the test folder instead.",
        },
    ),
    Method(
        "input/answer",
        "InputAnswerParams",
        "InputOutcome",
        "global",
        "Answer a question of the model. The first answer counts; a late one gets -32012.",
        {**_CHAT, "inputId": "in-1", "action": "accept", "values": {"answer": "Python 3.11"}},
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
        "Remove a rule. Idempotent.",
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
        "engines/list",
        "Empty",
        "EnginesListResult",
        "global",
        "The engines that can answer a chat: which are installed and logged in, and why not. Starts none.",
        {},
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
        "Ask the user for permission to run a tool call. Cancelled when it is decided elsewhere.",
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
        "Ask the user a question of the model. Cancelled when it is answered elsewhere.",
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
        "Call a tool of the app for the model. Cancelled with the turn, or when it times out.",
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
