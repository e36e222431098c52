"""Whatever a chat went through, its messages come out in the order that the strictest API demands."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.content import Block
from sidecar.providers.base import (
    AssistantMessage,
    Message,
    ModelEntry,
    ModelRequest,
    ToolCall,
    ToolResult,
    UserMessage,
    Verbatim,
)
from sidecar.providers.wording import (
    CONTINUE_PROMPT,
    NO_TEXT,
    CallIds,
    Media,
    ModelPart,
    Part,
    Text,
    UserPart,
    call,
    content_pieces,
    parts,
)

IDS = st.sampled_from([f"call_{number}" for number in range(6)])
TEXTS = st.sampled_from(["", " ", "\n", "yes", "no"])
CALLS = st.lists(
    st.builds(ToolCall, IDS, st.just("look"), st.just({})), max_size=3, unique_by=lambda made: made.id
)
VERBATIM = st.none() | st.just(Verbatim("anthropic", "m", [{"type": "text"}]))
MESSAGES = st.lists(
    st.builds(UserMessage, TEXTS.map(lambda text: [Block(type="text", text=text)]))
    | st.builds(AssistantMessage, TEXTS, CALLS, VERBATIM)
    | st.builds(ToolResult, IDS, TEXTS),
    max_size=12,
)


@given(MESSAGES)
def test_the_user_begins_and_nobody_replies_twice_in_a_row(messages: list[Message]) -> None:
    found = parts(messages)

    assert isinstance(found[0], UserPart)
    assert isinstance(found[-1], UserPart) or found[-1].results
    for before, after in pairwise(found):
        assert not (isinstance(before, ModelPart) and isinstance(after, ModelPart)) or before.results


@given(MESSAGES)
def test_every_call_has_its_one_result_right_behind_it(messages: list[Message]) -> None:
    for part in _replies(parts(messages)):
        assert [made.id for made in part.calls] == [result.call_id for result in part.results]
        assert len({made.id for made in part.calls}) == len(part.calls)
        assert part.text.strip() or part.calls or part.verbatim


@given(MESSAGES)
def test_nothing_that_was_said_is_lost(messages: list[Message]) -> None:
    found = parts(messages)
    said = [part.content for part in found if isinstance(part, UserPart) and part.content]
    asked = [message.content for message in messages if isinstance(message, UserMessage)]
    assert [content for content in said if content[0].text != CONTINUE_PROMPT] == asked
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    spoken = "".join(part.text for part in _replies(found))
    assert "".join(spoken.split()) == "".join("".join(reply.text for reply in replies).split())


@given(MESSAGES)
def test_a_new_call_never_has_an_id_that_was_used(messages: list[Message]) -> None:
    ids = CallIds(messages)
    used = {m.id for message in messages if isinstance(message, AssistantMessage) for m in message.tool_calls}
    taken = [ids.take(id) for id in (*used, None, "", "new", "new")]
    assert len({*taken, *used}) == len(taken) + len(used)


@given(st.text())
def test_whatever_the_model_writes_for_arguments_is_a_call(arguments: str) -> None:
    made = call("id", "look", arguments)
    assert (made.id, made.name, type(made.input)) == ("id", "look", dict)


def test_arguments_that_are_no_object_are_told_to_the_model() -> None:
    assert call("i", "look", "[1]").problem == "The arguments must be a JSON object."
    assert "not valid JSON" in str(call("i", "look", '{"a": ').problem)
    assert call("i", "", "{}").problem == "The call has no tool's name."
    assert call("i", "look", "").problem is None


def test_media_go_where_the_model_takes_them() -> None:
    image = Block(type="image", blob_id="b", mime_type="image/png", name="cat.png", size=3)
    request = ModelRequest("m", [], media={"b": b"PNG"})
    sees = ModelEntry("p:m", "m", "p", modalities=("text", "image"))

    assert content_pieces([image], request, sees) == [Media("image", "image/png", "UE5H")]
    assert content_pieces([image], request, ModelEntry("p:m", "m", "p", modalities=None)) == [
        Media("image", "image/png", "UE5H")
    ]
    (blind,) = content_pieces([image], request, ModelEntry("p:m", "m", "p", modalities=("text",)))
    assert isinstance(blind, Text)
    assert "cat.png is not shown" in blind.text
    (absent,) = content_pieces([image], ModelRequest("m", []), sees)
    assert isinstance(absent, Text)


def test_an_empty_prompt_is_never_sent_as_nothing() -> None:
    request, model = ModelRequest("m", []), ModelEntry("p:m", "m", "p")
    assert content_pieces([], request, model) == [Text(NO_TEXT)]
    assert content_pieces([Block(type="text", text=" \n")], request, model) == [Text(NO_TEXT)]


def _replies(found: list[Part]) -> list[ModelPart]:
    return [part for part in found if isinstance(part, ModelPart)]
