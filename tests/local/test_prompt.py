"""A request in llama.cpp's words, with and without a template that knows tools."""

from __future__ import annotations

from typing import Any

from sidecar.model.content import Block
from sidecar.providers.base import AssistantMessage, ModelRequest, ToolCall, ToolResult, ToolSpec, UserMessage
from sidecar.providers.local.files import LocalModel
from sidecar.providers.local.prompt import spell

LOOK = ToolSpec("look", "Look.", {"type": "object"})
ASKED = UserMessage([Block(type="text", text="What?")])
CALLED = AssistantMessage("Let me look.", [ToolCall("c1", "look", {"at": "sea"})])
RESULT = ToolResult("c1", "waves")


def model(native_tools: bool = False) -> LocalModel:
    return LocalModel("tiny", "/tiny.gguf", (0, 0), "Tiny", 4096, native_tools)


def messages(request: ModelRequest, native_tools: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spell(request, model(native_tools)).body["messages"]
    return found


def test_instructions_are_the_system_message() -> None:
    assert messages(ModelRequest("tiny", [ASKED], instructions="Be brief.")) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What?"},
    ]


def test_an_image_becomes_a_note() -> None:
    image = Block(type="image", blob_id="b", mime_type="image/png", name="cat.png")
    (said,) = messages(ModelRequest("tiny", [UserMessage([image])], media={"b": b"png"}))
    assert said == {"role": "user", "content": "[image cat.png is not shown: this model does not take it]"}


def test_without_tools_in_the_template_calls_and_results_are_text() -> None:
    system, *rest = messages(ModelRequest("tiny", [ASKED, CALLED, RESULT], tools=[LOOK]))
    assert 'look: Look. INPUT is {"type":"object"}' in system["content"]
    assert rest == [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": 'Let me look.\n{"tool":"look","input":{"at":"sea"}}'},
        {"role": "user", "content": "Result of look:\nwaves"},
    ]


def test_with_tools_in_the_template_calls_and_results_are_its_own() -> None:
    function = {"name": "look", "arguments": '{"at":"sea"}'}
    assert messages(ModelRequest("tiny", [ASKED, CALLED, RESULT], tools=[LOOK]), native_tools=True)[1:] == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "waves"},
    ]


def test_an_answer_takes_a_quarter_of_the_window_unless_told() -> None:
    bounds = [
        spell(ModelRequest("tiny", [ASKED], max_output=given), model()).body["max_tokens"]
        for given in (None, 7, 99_999)
    ]
    assert bounds == [1024, 7, 4096]
