"""Resources and prompts: kept outputs, indexed sources and chats by address, and common questions about past work."""

from __future__ import annotations

from collections.abc import Mapping

from sidecar_protocol.errors import CODES, RpcError

from ...chat.actions import index_actions
from ...chat.journal.identity import ChatAddress
from ...chat.sessions.chats import Chats
from ...engines.registry import DIRECT_ENGINE
from ...model.chats import ChatQuery
from ...model.content import Turn
from .messages import ListedPrompt, ListedResource, McpResult, ResourceTemplate

PAGE = 50
MAX_TEXT = 64 * 1024
"""Characters of a chat in a resource; the newest turns count."""

MAX_TURNS = 50

CHAT, OUTPUT = "sidecar://chat/", "sidecar://output/"

TEMPLATES: list[ResourceTemplate] = [
    {
        "uriTemplate": OUTPUT + "{id}",
        "name": "output",
        "title": "Kept output or indexed source",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": CHAT + "{sessionId}",
        "name": "chat",
        "title": "The last turns of a chat",
        "mimeType": "text/markdown",
    },
]

_QUESTIONS: dict[str, tuple[str, str, str]] = {
    "what-did-we-decide": (
        "What did we decide about a topic?",
        "topic",
        "Find what was decided about {topic} in earlier work on this project. Use search_chats and search_context,"
        " quote the decision and its reason, and name the chat that it is from.",
    ),
    "what-changed": (
        "What changed in this project?",
        "since",
        "Summarise what changed in this project{since}. Use the patches tool, show the important diffs, and say why"
        " each change was made as far as search_chats tells.",
    ),
    "continue-where-we-left-off": (
        "Continue where we left off",
        "",
        "Find out what was being worked on last in this project: use search_chats, patches and open_files. Say in a"
        " few sentences where it stands and what the next step is, then continue with it.",
    ),
}


def _listed_prompt(name: str, title: str, argument: str) -> ListedPrompt:
    prompt: ListedPrompt = {"name": name, "title": title, "description": title}
    if argument:
        prompt["arguments"] = [{"name": argument, "required": False}]
    return prompt


PROMPTS = [_listed_prompt(name, title, argument) for name, (title, argument, _) in _QUESTIONS.items()]


async def list_resources(chats: Chats, project: str | None, cursor: str | None) -> McpResult:
    """The project's chats, then its kept outputs and sources, newest first."""
    kind, _, rest = (cursor or "chats:").partition(":")
    if kind == "chats":
        page, following = await chats.page(ChatQuery(project_path=project, cursor=rest or None, limit=PAGE))
        listed = [
            {
                "uri": CHAT + chat.key.session_id,
                "name": chat.title or chat.key.value,
                "mimeType": "text/markdown",
            }
            for chat in page
        ]
        return {"resources": listed, "nextCursor": f"chats:{following}" if following else "sources:"}
    if kind != "sources":
        raise RpcError(CODES["invalid_params"], "`cursor`: not one that resources/list has returned")
    if project is None or not chats.services.settings(None).values.index.enabled:
        return {"resources": []}
    found = await index_actions.list_sources(
        chats, ChatAddress(project_path=project), "project", None, rest or None, PAGE
    )
    sources: list[ListedResource] = [
        {"uri": OUTPUT + source.id, "name": source.label, "mimeType": "text/plain", "size": source.bytes}
        for source in found.sources
    ]
    more = {"nextCursor": f"sources:{found.cursor}"} if found.cursor else {}
    return {"resources": sources, **more}


async def read_resource(chats: Chats, project: str | None, uri: str) -> McpResult:
    if uri.startswith(OUTPUT):
        whole = await index_actions.get(chats, ChatAddress(project_path=project), uri[len(OUTPUT) :], None)
        return _contents(uri, "text/plain", whole.text)
    if uri.startswith(CHAT):
        return _contents(uri, "text/markdown", await _chat_text(chats, uri[len(CHAT) :]))
    raise RpcError(
        CODES["invalid_params"],
        f"`uri`: there is no resource {uri[:200]!r}; it begins with {CHAT} or {OUTPUT}",
    )


def get_prompt(name: str, arguments: Mapping[str, object]) -> McpResult:
    if name not in _QUESTIONS:
        raise RpcError(
            CODES["invalid_params"], f"`name`: there is no prompt {name[:64]!r}, only {', '.join(_QUESTIONS)}"
        )
    title, argument, text = _QUESTIONS[name]
    given = arguments.get(argument)
    value = given if isinstance(given, str) else ""
    if argument == "topic":
        text = text.format(topic=value or "the current topic")
    elif argument == "since":
        text = text.format(since=f" since {value}" if value else " recently")
    return {
        "description": title,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }


async def _chat_text(chats: Chats, session_id: str) -> str:
    session = await chats.existing_session(ChatAddress(session_id=session_id))
    _, page = await chats.history(
        session, before=None, after=None, around=None, limit=MAX_TURNS, max_bytes=MAX_TEXT
    )
    chat = session.chat
    text = "\n\n".join(filter(None, map(_turn_text, page.turns)))
    return f"# {chat.title or chat.key.value}\n\n{text[-MAX_TEXT:]}"


def _turn_text(turn: Turn) -> str:
    parts = []
    for item in turn.items:
        if item.type == "user" and turn.engine == DIRECT_ENGINE:
            continue  # the call as the agent sent it; the tool's line follows
        if item.type == "user":
            said = "".join(block.text or "" for block in item.content or ())
            parts.append(f"**User:** {said}")
        elif item.type == "message" and item.text:
            parts.append(f"**Assistant:** {item.text}")
        elif item.type == "tool":
            parts.append(f"*{item.title or item.name}* ({item.status})")
    return "\n\n".join(parts)


def _contents(uri: str, mime_type: str, text: str) -> McpResult:
    return {"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]}
