"""The request to a model that reads no history, such as `echo:`: the prompt, or the unfinished turn, and its manifest.

Nothing is collected or counted for it: tokens are an upper estimate by length, and no window is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...context.materials import Manifest, ManifestBlock
from ...engines.base import ModelCalls
from ...model.chats import Chat, Prompt
from ...model.content import Block, Turn
from ...providers.base import Message, ModelRequest, Provider, UserMessage
from ...text.token_estimate import estimate_tokens
from ..journal.running_turn import RunningTurn
from .media import Showing, notice
from .messages import attachment_text, messages_of, plain_text

STEPS_LABEL = "this turn so far"


class PlainRequests:
    """The requests of one turn; records the manifest of each."""

    def __init__(self, turn: RunningTurn, provider: Provider, model: str, showing: Showing) -> None:
        self._turn = turn
        self._provider = provider
        self._entry = provider.model_entry(model)
        self._model = model
        self._showing = showing
        self._first: list[ManifestBlock] = []
        self._length = 0

    async def calls(
        self, chat: Chat, prompt: Prompt, continued: Turn | None, effort: str | None
    ) -> ModelCalls:
        """Record the first request, and which media the model does not get."""
        content, left_out = await self._showing.blocks(prompt.content, self._entry, prompt.turn_id)
        messages: list[Message] = [UserMessage(content)]
        self._first = _prompt_blocks(content)
        if continued:
            messages = messages_of([continued], chat.epoch)
            self._first = [_block("history", "history", STEPS_LABEL, plain_text(messages), "this-turn")]
        self._length = len(messages)
        await self._record(self._first)
        if news := self._showing.take_unreported(self._entry.id, left_out):
            await self._turn.note("notice", notice(self._entry.id, news))
        request = ModelRequest(self._model, messages, effort)
        return ModelCalls(self._provider, request, self._record_next_step)

    async def _record_next_step(self, request: ModelRequest) -> ModelRequest:
        added = plain_text(request.messages[self._length :])
        await self._record([*self._first, _block("steps", "history", STEPS_LABEL, added, "this-turn")])
        return request

    async def _record(self, blocks: list[ManifestBlock]) -> None:
        used = sum(block.tokens for block in blocks)
        name = f"{self._entry.provider}:{self._model}"
        await self._turn.note_request(Manifest(name, None, None, None, used, exact=False, blocks=blocks))


def _prompt_blocks(content: Sequence[Block]) -> list[ManifestBlock]:
    text = "\n".join(block.text or "" for block in content if block.type == "text")
    attached = [block for block in content if block.type != "text"]
    blocks = [_block("prompt", "prompt", "prompt", text, "prompt")]
    if attached:
        label = ", ".join(block.name or block.uri or block.type for block in attached)
        told = "\n".join(map(attachment_text, attached))
        blocks.insert(0, _block("attachments", "attachments", label, told, "attached"))
    return blocks


def _block(id: str, kind: str, label: str, text: str, gate: str) -> ManifestBlock:
    return ManifestBlock(id, kind, label, estimate_tokens(text), "full", gate, text)
