"""A chat's title: its first words, or one by the model when the settings ask for it."""

from __future__ import annotations

import anyio

from ...model.content import Block, Turn
from ...providers.base import ModelRequest, Provider, ReplyPart, TextDelta, UserMessage
from ...store.store import Store

TITLE_CHARACTERS = 60
"""One line in a sidebar."""

SAID_CHARACTERS = 2000
"""The beginning says what a chat is about; more would only cost tokens."""

ASK_S = 30.0
"""A title is not worth waiting longer for; the first words stay."""

REQUEST = (
    "Give the chat that begins as follows a title of at most six words. Answer with the title alone.\n\n"
)


async def first_words_of_chat(store: Store, chat: int) -> str | None:
    """The title by the first prompt that is visible; None when there is none."""
    _, page = await store.turns.page(chat, after="turn.0", limit=1, max_bytes=1)
    items = page.turns[0].items if page.turns else []
    return next((first_words(item.content) for item in items if item.type == "user" and item.content), None)


def first_words(content: list[Block]) -> str | None:
    """The first words of a prompt, shortened to one line."""
    line = ""
    for word in " ".join(block.text or "" for block in content if block.type == "text")[:400].split():
        if len(line) + len(word) > TITLE_CHARACTERS:
            return (line or word[:TITLE_CHARACTERS]).rstrip() + "…"
        line += word + " "
    return line.strip() or None


def conversation_text(turn: Turn) -> str:
    """The text of user and model in a turn, without thoughts and tool calls."""
    texts = [
        item.text if item.type == "message" else "".join(block.text or "" for block in item.content or ())
        for item in turn.items
        if item.type in ("user", "message")
    ]
    return "\n\n".join(text for text in texts if text)


async def ask_model(provider: Provider, model: str, said: str) -> str | None:
    """A title by the model for a chat with this beginning; None when it does not answer in time."""
    pieces: list[str] = []

    async def take(chunk: ReplyPart) -> None:
        if isinstance(chunk, TextDelta):
            pieces.append(chunk.text)

    request = [Block(type="text", text=REQUEST + said[:SAID_CHARACTERS])]
    with anyio.move_on_after(ASK_S):
        await provider.stream(ModelRequest(model, [UserMessage(request)]), take)
        return first_words([Block(type="text", text="".join(pieces).strip().partition("\n")[0].strip('"# '))])
    return None
