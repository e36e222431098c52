"""Each rule of Anthropic's Messages refuses the request that breaks it, in Anthropic's words."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, Model
from sidecar.fake_provider.signing import seal

from .images import PNG
from .raw import TOOL, post

USER: Any = {"role": "user", "content": "hi"}
BUDGET: Any = {"type": "enabled", "budget_tokens": 1024}
MARK: Any = {"type": "ephemeral"}


def user(*blocks: Any) -> Any:
    return {"role": "user", "content": [*blocks]}


def assistant(*blocks: Any) -> Any:
    return {"role": "assistant", "content": [*blocks]}


def text(words: str, **more: Any) -> Any:
    return {"type": "text", "text": words, **more}


def use(id: str = "t1", **more: Any) -> Any:
    return {"type": "tool_use", "id": id, "name": "look", "input": {}, **more}


def result(id: str = "t1", **more: Any) -> Any:
    return {"type": "tool_result", "tool_use_id": id, "content": "a cat", **more}


def thought(words: str, signed: str | None = None) -> Any:
    return {"type": "thinking", "thinking": words, "signature": seal(words if signed is None else signed)}


def image(data: str = PNG.data, media_type: str = PNG.type) -> Any:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def body(*messages: Any, **more: Any) -> Any:
    return {"model": "fake-1", "max_tokens": 2048, "messages": [*messages], **more}


LOOK: Any = {"name": "look", "input_schema": TOOL}
GOOD = {
    "consecutive roles": body(USER, USER, assistant(text("a")), assistant(text("b")), USER),
    "a prefill": body(USER, assistant(text("The answer is"))),
    "results in two messages": body(
        USER, assistant(use("t1"), use("t2")), user(result("t1")), user(result("t2"))
    ),
    "text after the results": body(USER, assistant(use()), user(result(), text("and now?"))),
    "an empty result": body(USER, assistant(use()), user(result(content=""))),
    "an image as a result": body(USER, assistant(use()), user(result(content=[image()]))),
    "thinking sent back": body(USER, assistant(thought("hm"), use()), user(result()), thinking=BUDGET),
    "omitted thinking sent back": body(USER, assistant({**thought("hm"), "thinking": ""}, text("a")), USER),
    "four breakpoints": body(
        user(*(text(str(at), cache_control=MARK) for at in range(3))), system=[text("s", cache_control=MARK)]
    ),
}
BAD: dict[str, tuple[Any, str]] = {
    "an unknown parameter": (body(USER, n=1), "n: Extra inputs are not permitted"),
    "no max_tokens": ({"model": "fake-1", "messages": [USER]}, "max_tokens: Field required"),
    "too many max_tokens": (
        body(USER, max_tokens=10**6),
        "which is the maximum allowed number of output tokens",
    ),
    "no messages": (body(), "messages: at least one message is required"),
    "a system role": (body({"role": "system", "content": "x"}, USER), 'Unexpected role "system"'),
    "a tool role": (body(USER, {"role": "tool", "content": "x"}), 'Unexpected role "tool"'),
    "an assistant first": (body(assistant(text("a")), USER), 'first message must use the "user" role'),
    "an unknown member": (body({**USER, "id": "1"}), "messages.0.id: Extra inputs are not permitted"),
    "an unknown member of a block": (
        body(user(text("a", id=1))),
        "messages.0.content.0.text.id: Extra inputs",
    ),
    "empty content": (body(user()), "must have non-empty content"),
    "an empty string": (body({"role": "user", "content": ""}), "must have non-empty content"),
    "an empty text block": (body(user(text(""))), "text content blocks must be non-empty"),
    "whitespace": (body(user(text(" \n"))), "must contain non-whitespace text"),
    "a whitespace string": (body({"role": "user", "content": " "}), "must contain non-whitespace text"),
    "a prefill with trailing whitespace": (
        body(USER, assistant(text("a "))),
        "cannot end with trailing whitespace",
    ),
    "a use without a result": (
        body(USER, assistant(use()), USER),
        "without `tool_result` blocks immediately after: t1",
    ),
    "a use at the end": (body(USER, assistant(use())), "without `tool_result` blocks immediately after: t1"),
    "one result of two": (
        body(USER, assistant(use("t1"), use("t2")), user(result("t1"))),
        "without `tool_result` blocks immediately after: t2",
    ),
    "text before the result": (
        body(USER, assistant(use()), user(text("here:"), result())),
        "without `tool_result` blocks immediately after: t1",
    ),
    "a result without a use": (body(USER, assistant(text("a")), user(result())), "unexpected `tool_use_id`"),
    "a result twice": (body(USER, assistant(use()), user(result(), result())), "must have a single result"),
    "a use twice": (body(USER, assistant(use(), use()), user(result())), "`tool_use` ids must be unique"),
    "an id of other characters": (
        body(USER, assistant(use("call:1")), user(result("call:1"))),
        "tool_use.id: String should match pattern",
    ),
    "input as text": (
        body(USER, assistant(use(input="{}")), user(result())),
        "Input should be a valid dictionary",
    ),
    "a use by the user": (body(user(use())), "Input tag 'tool_use'"),
    "five breakpoints": (body(user(*(text(str(at), cache_control=MARK) for at in range(5)))), "Found 5."),
    "a breakpoint on nothing": (
        body(user(text("", cache_control=MARK))),
        "cannot be set for empty text blocks",
    ),
    "a small budget": (body(USER, thinking=BUDGET | {"budget_tokens": 100}), "greater than or equal to 1024"),
    "a budget beyond max_tokens": (
        body(USER, thinking=BUDGET | {"budget_tokens": 2048}),
        "must be greater than",
    ),
    "thinking with temperature": (body(USER, thinking=BUDGET, temperature=0.5), "may only be set to 1"),
    "thinking with a forced tool": (
        body(USER, thinking=BUDGET, tools=[LOOK], tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "thinking that was changed": (
        body(USER, assistant(thought("hm", "ha"), text("a")), USER),
        "Invalid `signature`",
    ),
    "thinking without a signature": (
        body(USER, assistant({"type": "thinking", "thinking": "hm"}, text("a")), USER),
        "signature: Field required",
    ),
    "a tool loop without its thinking": (
        body(USER, assistant(use()), user(result()), thinking=BUDGET),
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    "a bad tool name": (body(USER, tools=[{**LOOK, "name": "a b"}]), "tools.0.custom.name"),
    "a tool without a schema": (body(USER, tools=[{"name": "look"}]), "input_schema: Field required"),
    "a schema that is no object": (
        body(USER, tools=[{**LOOK, "input_schema": {"type": "string"}}]),
        "input_schema.type: Input should be 'object'",
    ),
    "two tools of a name": (body(USER, tools=[LOOK, LOOK]), "Tool names must be unique"),
    "an image of another type": (body(user(image(media_type="image/bmp"))), "media_type: Input should be"),
    "an image that is none": (body(user(image(data="AAAA"))), "Image does not match the provided media type"),
    "a huge image": (body(user(image(data="A" * (5 * 1024 * 1024 + 4)))), "image exceeds 5 MB maximum"),
}


@pytest.mark.parametrize("given", GOOD.values(), ids=GOOD)
async def test_messages_take(fake: FakeProvider, given: Any) -> None:
    answer = await post(fake, "anthropic", given)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
async def test_messages_refuse(fake: FakeProvider, given: Any, message: str) -> None:
    answer = await post(fake, "anthropic", given)
    assert answer.status == 400
    assert (answer.json["type"], answer.json["error"]["type"]) == ("error", "invalid_request_error")
    assert message in answer.json["error"]["message"]


async def test_modern_models_have_rules_of_their_own(fake: FakeProvider) -> None:
    async def refused(*messages: Any, **more: Any) -> str:
        answer = await post(fake, "anthropic", body(*messages, **more) | {"model": "fake-modern"})
        return "" if answer.status == 200 else str(answer.json["error"]["message"])

    assert "does not support assistant message prefill" in await refused(USER, assistant(text("a")))
    assert '"thinking.type.enabled" is not supported' in await refused(USER, thinking=BUDGET)
    assert (
        await refused(USER, {"role": "system", "content": "Be brief."}, thinking={"type": "adaptive"}) == ""
    )


async def test_the_newest_version_takes_no_citations_of_the_user(fake: FakeProvider) -> None:
    cited = body(user(text("a", citations=[{"type": "char_location"}])))
    assert (await post(fake, "anthropic", cited)).status == 200
    assert (await post(fake, "anthropic", cited, anthropic_version="2026-10-21")).status == 400


async def test_the_version_header_is_demanded(fake: FakeProvider) -> None:
    answer = await post(fake, "anthropic", body(USER), anthropic_version="2024-01-01")
    assert "is not a valid version" in answer.json["error"]["message"]


async def test_a_prompt_beyond_the_window_is_too_long() -> None:
    async with FakeProvider(models=[Model("tiny", window=50)]) as fake:
        answer = await post(
            fake, "anthropic", body({"role": "user", "content": "word " * 100}) | {"model": "tiny"}
        )
    assert answer.json["error"]["message"].startswith("prompt is too long: ")
