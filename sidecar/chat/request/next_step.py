"""Fits the request again between the steps of a turn, when tool results have grown it, and reports what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...context import budget as budgets
from ...context.assembly import NO_ROOM
from ...context.materials import Inclusion, ManifestBlock
from ...model.content import Block
from ...model.failures import Failure, ProviderFailed, named_window
from ...model.items import CONTEXT_LEFT_OUT, HISTORY_LEFT_OUT
from ...model.refusals import is_provider_refusal
from ...providers.base import Message, ModelEntry, ModelRequest, ToolResult, UserMessage
from ..journal.running_turn import RunningTurn
from .build import HEAD_BLOCKS, BuiltRequest, precedes_prompt
from .media import (
    LeftOut,
    Showing,
    content_of,
    has_media,
    message_without_media,
    notice,
    refused,
    shown_media,
    with_content,
    without_media,
)
from .messages import MASKED_CHARACTERS, mask_result, plain_text
from .plain import STEPS_LABEL

UNMASKED_RESULTS = 4
"""The newest results of a turn stay whole as long as anything else can be removed."""

REFUSED = "refused"
"""The gate of what was removed because the provider refused the request that contained it."""

SHRINKING = 0.7
"""How much of a request that was too large is sent again, if the provider does not say how much it takes."""

BROKEN_STATUSES = (500, 501)
"""What some servers answer, each time, to an image that their decoder or their model does not take."""


class StepFitter:
    """Fits the requests of one turn, starting from its first request as it was measured. `is_trusted` says whether
    the project still is.
    """

    def __init__(
        self,
        turn: RunningTurn,
        built: BuiltRequest,
        showing: Showing,
        model: ModelEntry,
        is_trusted: Callable[[], bool],
    ) -> None:
        self._turn = turn
        self._built = built
        self._showing = showing
        self._model = model
        self._is_trusted = is_trusted
        self._trusted_rules = built.trusted_rules
        self._blocks = built.manifest.blocks
        """Those of the turn's first request; `dropped` once they were removed."""
        self._turn_start = len(built.request.messages)
        self._bare_prompt = UserMessage(built.prompt)
        self._head_messages = int(
            any(block.id in HEAD_BLOCKS and block.is_sent for block in built.manifest.blocks)
        )
        """Messages at the start that replace compacted turns; they stay."""
        self._total = built.budget.total
        """Tokens that a request may have; less once the provider has refused one as too large."""
        self._suspects: list[str] = []
        """Media that were removed though the provider did not say that it refuses them."""
        self._fixed: int = built.manifest.used - built.meter.messages(built.request.messages)

    async def fit_next_step(self, request: ModelRequest) -> ModelRequest:
        """The next request: with old outputs masked, the oldest turns removed where necessary, and the bytes of media
        that the user has added.
        """
        self._suspects = []
        request = self._without_trust(request)
        messages = await self._fit(await self._replace_unreported_media(request.messages))
        new = any(_has_unread_media(message, request.media) for message in messages)
        # All again: the limit of a request counts for the media of all its steps.
        media = await self._showing.bytes_of(messages) if new else request.media
        return msgspec.structs.replace(request, messages=messages, media=media)

    def _without_trust(self, request: ModelRequest) -> ModelRequest:
        """The request with the project's rules fenced, if it was trusted when the turn began and no longer is."""
        rules = self._trusted_rules
        if rules is None or request.instructions is None or self._is_trusted():
            return request
        # For the rest of the turn, even if the trust comes back: `rules.text` is not in the request any more.
        self._trusted_rules = None
        self._fixed += self._built.meter.count(rules.fenced) - self._built.meter.count(rules.text)
        fenced = request.instructions.replace(rules.text, rules.fenced, 1)
        return msgspec.structs.replace(request, instructions=fenced)

    async def reduce(
        self, request: ModelRequest, failure: ProviderFailed, is_final: bool
    ) -> ModelRequest | None:
        """Remove what the provider may have refused: media, context, and turns that this model has never accepted.
        None when the request failed for another reason, or nothing can be removed. `is_final` says that it will not
        be sent again as it is.
        """
        shown = [block for block in shown_media(request.messages) if block.blob_id in request.media]
        if not is_provider_refusal(failure.details()):
            return await self._without_suspects(request, failure, shown) if is_final else None
        if shown:
            return await self._without_media(request, shown)
        if failure.reason == "window":
            return await self._within_window(request, named_window(failure))
        # Only the first request of a turn: later ones contain tool calls that have had effects.
        first = len(request.messages) == self._turn_start
        return await self._without_context(request) if first else None

    async def tell_left_out(self, out: Sequence[LeftOut]) -> None:
        """Notify the user, once, which media the model does not get."""
        news = self._showing.take_unreported(self._model.id, out)
        if news:
            await self._turn.note("notice", notice(self._model.id, news))

    async def _within_window(self, request: ModelRequest, named: int | None) -> ModelRequest | None:
        """The request within the window that the provider has: what it named, and less than what it refused."""
        messages = list(request.messages)
        refused_tokens = self._used_tokens(messages)
        window = named or self._built.budget.window
        self._total = min(budgets.budget(window, None).total, int(refused_tokens * SHRINKING))
        self._turn.on_usage = None
        try:
            messages = await self._fit(messages)
        except Failure:
            return None
        space = max(1, window - self._used_tokens(messages))
        return msgspec.structs.replace(request, messages=messages, answer_space=space)

    async def _without_suspects(
        self, request: ModelRequest, failure: ProviderFailed, shown: Sequence[Block]
    ) -> ModelRequest | None:
        """The request without its media, if the server breaks each time; and if it breaks then too, it was not they."""
        if self._suspects:
            self._showing.accept(self._model.id, self._suspects)
            self._suspects = []
            return None
        if not shown or (failure.params or {}).get("status") not in BROKEN_STATUSES:
            return None
        self._suspects = [block.blob_id or "" for block in shown]
        return await self._without_media(request, shown)

    async def _without_media(self, request: ModelRequest, shown: Sequence[Block]) -> ModelRequest:
        self._turn.on_usage = None  # what the provider will count is no longer what was measured
        self._showing.refuse(self._model.id, [block.blob_id or "" for block in shown])
        await self.tell_left_out([refused(block) for block in shown])
        self._bare_prompt = message_without_media(self._bare_prompt)
        return msgspec.structs.replace(request, messages=without_media(request.messages), media={})

    async def _without_context(self, request: ModelRequest) -> ModelRequest | None:
        """Remove the files and other blocks that came with the prompt; then the turns before it, unless this model
        has answered with them before.
        """
        before = list(request.messages[: self._turn_start - 1])
        if not self._bare_prompt.content:
            return None  # a continued turn has no prompt that could be sent alone
        if request.messages[self._turn_start - 1] != self._bare_prompt:
            code = CONTEXT_LEFT_OUT
        elif before and not self._built.was_taken:
            code, before = HISTORY_LEFT_OUT, []
        else:
            return None
        await self._turn.note("notice", {"code": code, "params": {"model": self._model.id}})
        self._turn.on_usage = None
        self._turn_start = len(before) + 1
        self._head_messages = min(self._head_messages, len(before))
        messages: list[Message] = [*before, self._bare_prompt]
        is_removed = precedes_prompt if code == CONTEXT_LEFT_OUT else _is_before_the_turn
        self._drop_blocks(is_removed, REFUSED)
        await self._record_request(self._blocks)
        return msgspec.structs.replace(request, messages=messages)

    async def _replace_unreported_media(self, messages: Sequence[Message]) -> list[Message]:
        """The messages, with lines of text for new media that the model does not get."""
        made: list[Message] = list(messages)
        for position in range(self._turn_start, len(made)):
            message = made[position]
            if has_media(content_of(message)):
                content, out = await self._showing.blocks(content_of(message), self._model)
                await self.tell_left_out(out)
                made[position] = with_content(message, content)
        return made

    async def _fit(self, messages: list[Message]) -> list[Message]:
        total = self._total
        masked = False
        if self._used_tokens(messages) > total:
            masked, messages = True, self._mask_results(messages, total)
        shrunk = masked
        while self._used_tokens(messages) > total:
            shrunk = True
            # Before any turn is dropped: files can be read again, what was said cannot.
            if self._strip_context(messages):
                continue
            cut = _next_prompt(messages, self._head_messages, self._turn_start)
            if cut is None:
                raise _too_full(self._used_tokens(messages), total)
            # Whole turns only: a tool result without its call is refused by every provider.
            messages = messages[: self._head_messages] + messages[cut:]
            self._turn_start -= cut - self._head_messages
        await self._record_manifest(messages, shrunk)
        return messages

    def _strip_context(self, messages: list[Message]) -> bool:
        """Remove the context from the prompt's message; False when there is none."""
        position = self._turn_start - 1
        if not self._built.has_context or position < 0 or messages[position] is self._bare_prompt:
            return False
        messages[position] = self._bare_prompt
        self._drop_blocks(precedes_prompt, NO_ROOM)
        return True

    def _drop_blocks(self, is_removed: Callable[[ManifestBlock], bool], gate: str) -> None:
        self._blocks = [
            msgspec.structs.replace(block, included="dropped", gate=gate, text="")
            if block.is_sent and is_removed(block)
            else block
            for block in self._blocks
        ]

    def _used_tokens(self, messages: list[Message]) -> int:
        return max(0, self._fixed) + self._built.meter.messages(messages)

    def _mask_results(self, messages: list[Message], total: int) -> list[Message]:
        """Replace outputs by references, oldest first, until the request fits."""
        made = list(messages)
        positions = [position for position, message in enumerate(made) if isinstance(message, ToolResult)]
        used = self._used_tokens(made)
        # The newest last: the model is working with them.
        for position in [*positions[:-UNMASKED_RESULTS], *positions[-UNMASKED_RESULTS:]]:
            message = made[position]
            assert isinstance(message, ToolResult)
            is_short = len(message.said or message.text) <= MASKED_CHARACTERS and not message.content
            if used <= total or is_short:
                continue
            short = mask_result(self._built.secret, message)
            used += self._built.meter.message(short) - self._built.meter.message(message)
            made[position] = short
        return made

    async def _record_manifest(self, messages: list[Message], truncated: bool) -> None:
        grown = self._built.meter.messages(messages[self._turn_start :])
        used = self._used_tokens(messages)
        included: Inclusion = "truncated" if truncated else "full"
        text = plain_text(messages[0 if truncated else self._turn_start :])
        block = ManifestBlock("steps", "history", STEPS_LABEL, grown, included, "this-turn", text)
        blocks = [*self._blocks, block]
        if truncated:
            others = sum(one.tokens for one in blocks if one.is_sent and one.kind != "history")
            blocks = [one for one in blocks if one.kind != "history"]
            tokens = max(0, used - others)
            blocks.append(
                msgspec.structs.replace(block, label="the chat and this turn so far", tokens=tokens)
            )
        await self._record_request(blocks)

    async def _record_request(self, blocks: list[ManifestBlock]) -> None:
        used = sum(block.tokens for block in blocks if block.is_sent)
        self._turn.window = {"used": used, "budget": self._total}
        manifest = msgspec.structs.replace(self._built.manifest, used=used, blocks=blocks)
        await self._turn.note_request(manifest)


def _is_before_the_turn(block: ManifestBlock) -> bool:
    return block.kind == "history" or block.id in HEAD_BLOCKS


def _has_unread_media(message: Message, media: Mapping[str, bytes]) -> bool:
    return any(block.blob_id not in media for block in shown_media([message]))


def _next_prompt(messages: list[Message], start: int, end: int) -> int | None:
    """The index of the second prompt in the history: a whole turn can be removed before it."""
    for position in range(start + 1, end):
        if isinstance(messages[position], UserMessage) and not isinstance(
            messages[position - 1], UserMessage
        ):
            return position
    return None


def _too_full(needed: int, total: int) -> Failure:
    return Failure(
        "context_budget",
        f"This turn needs about {needed} tokens and the model's context window allows {total}",
        action="compact",
        hint="Ask for less at once, or choose a model with a larger window",
        facts={"needed": needed, "available": total},
    )
