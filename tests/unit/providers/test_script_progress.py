"""Which reply plays: by prompt, in order, after an error, after a tool call, and when none is left."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers import script_progress
from sidecar.providers.base import AssistantMessage, Message, Provider, ToolCall, ToolResult

from .conftest import Script, ask, said, text


def says(word: str, **fields: Any) -> dict[str, Any]:
    return {"steps": [{"text": word}], **fields}


def fails(*then: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"steps": [{"error": {"reason": "overloaded"}}, *then], **fields}


CALL = {"toolCall": {"name": "look"}}


async def texts(provider: Provider, *prompts: str) -> list[str]:
    """What each prompt in turn brings; a failure's reason stands in for it."""
    return [await _text_or_reason(provider, prompt) for prompt in prompts]


async def _text_or_reason(provider: Provider, *messages: str | Message) -> str:
    try:
        return await text(provider, *messages)
    except ProviderFailed as failed:
        return f"<{failed.reason}>"


def answered(*ids: str) -> list[Message]:
    """What follows a prompt when these calls were made and have run."""
    calls = [ToolCall(id, "look", {}) for id in ids]
    return [AssistantMessage("", calls), *(ToolResult(id, "seen") for id in ids)]


async def test_replies_without_a_match_play_in_order(script: Script) -> None:
    provider = script(says("1"), says("2", times=2), says("3"))

    assert await texts(provider, "a", "b", "c", "d", "e") == ["1", "2", "2", "3", "<bad_reply>"]


async def test_the_first_match_plays_as_often_as_it_is_asked_for(script: Script) -> None:
    provider = script(
        says("plain"), says("ham", match="ham"), says("egg", regex="^e.g$"), says("ham2", match="ham")
    )

    assert await texts(provider, "ham?", "egg", "ham!", "eggs", "ham") == [
        "ham",
        "egg",
        "ham",
        "plain",
        "ham",
    ]


async def test_a_match_that_is_used_up_makes_way(script: Script) -> None:
    provider = script(says("1", match="a", times=1), says("2", match="a", times=1), says("rest"))

    assert await texts(provider, "a", "a", "a") == ["1", "2", "rest"]


async def test_only_the_last_thing_the_user_said_counts(script: Script) -> None:
    provider = script(says("ham", match="ham"), says("egg", match="egg"))

    assert await text(provider, "ham", AssistantMessage("Sure"), "egg", AssistantMessage("Half")) == "egg"


async def test_a_retry_goes_on_to_the_next_match(script: Script) -> None:
    provider = script(fails(match="a"), fails(match="a"), says("ok", match="a"))

    outcomes = await texts(provider, "a", "a", "a", "a")

    assert outcomes == ["<overloaded>", "<overloaded>", "ok", "<overloaded>"]


async def test_a_fault_without_a_successor_stays(script: Script) -> None:
    assert await texts(script(fails(match="a")), "a", "a") == ["<overloaded>", "<overloaded>"]


async def test_another_prompt_is_no_retry(script: Script) -> None:
    provider = script(fails(match="a"), says("ok", match="a"))

    assert await texts(provider, "a", "a2", "a", "a2") == ["<overloaded>", "<overloaded>", "ok", "ok"]


async def test_a_retry_goes_on_with_the_steps_behind_the_error(script: Script) -> None:
    provider = script(fails({"text": "rest"}, match="a"), says("other", match="a"))

    assert await texts(provider, "a", "a", "a") == ["<overloaded>", "rest", "<overloaded>"]


async def test_a_retry_in_order_takes_the_next_reply(script: Script) -> None:
    assert await texts(script(fails(), says("ok")), "a", "a") == ["<overloaded>", "ok"]


async def test_a_result_goes_on_behind_its_call(script: Script) -> None:
    provider = script({"steps": [{"text": "1"}, CALL, {"text": "2"}, CALL, {"text": "3"}]}, says("other"))

    first = await text(provider, "a")
    second = await text(provider, "a", *answered("scripted-1"))
    third = await text(provider, "a", *answered("scripted-1"), *answered("scripted-2"))

    assert [first, second, third] == ["1", "2", "3"]


async def test_a_call_at_the_end_ends_the_turn_when_it_is_answered(script: Script) -> None:
    provider = script({"steps": [CALL]}, says("other"))
    await ask(provider, "a")

    chunks, completion = await ask(provider, "a", *answered("scripted-1"))

    assert (chunks, completion.stop) == ([], "end_turn")


async def test_several_calls_go_on_once(script: Script) -> None:
    provider = script(
        {"steps": [{"toolCalls": [{"name": "x", "id": "x"}, {"name": "y", "id": "y"}]}, {"text": "on"}]}
    )
    await ask(provider, "a")

    outcomes = [await _text_or_reason(provider, "a", *answered("x", "y")) for _ in range(2)]

    assert outcomes == ["on", "<bad_reply>"]


async def test_what_the_user_adds_meanwhile_does_not_change_the_reply(script: Script) -> None:
    provider = script({"steps": [CALL, {"text": "on"}]}, says("steered", match="steer"))
    await ask(provider, "a")

    assert await text(provider, "a", *answered("scripted-1"), said("steer")) == "on"


async def test_chats_that_play_at_once_keep_their_places(script: Script) -> None:
    provider = script(
        {"match": "ham", "steps": [CALL, {"text": "ham"}]}, {"match": "egg", "steps": [CALL, {"text": "egg"}]}
    )
    await ask(provider, "ham")
    await ask(provider, "egg")

    egg = await text(provider, "egg", *answered("scripted-2"))
    ham = await text(provider, "ham", *answered("scripted-1"))

    assert (ham, egg) == ("ham", "egg")


async def test_an_error_behind_a_call_goes_on_for_the_same_results(script: Script) -> None:
    provider = script({"steps": [CALL, {"error": {"reason": "timeout"}}, {"text": "on"}]})
    await ask(provider, "a")

    outcomes = [await _text_or_reason(provider, "a", *answered("scripted-1")) for _ in range(2)]

    assert outcomes == ["<timeout>", "on"]


async def test_a_result_of_an_unknown_call_is_answered_as_a_prompt(script: Script) -> None:
    assert await text(script(says("new")), "a", *answered("from-before-the-restart")) == "new"


async def test_an_exhausted_script_says_so(script: Script) -> None:
    with pytest.raises(ProviderFailed) as caught:
        await ask(script(says("x", match="x")), "y")

    path = (caught.value.params or {})["path"]
    assert caught.value.message == f"{path}: the script has no reply left for the prompt 'y'"
    assert caught.value.hint == 'Add a reply, raise its `times`, or set "onExhausted" to "repeat" or "echo"'


async def test_an_exhausted_script_plays_again(script: Script) -> None:
    provider = script(says("1"), says("2"), says("x", match="x", times=1), onExhausted="repeat")

    assert await texts(provider, "a", "x", "b", "c", "x", "d", "e") == ["1", "x", "2", "1", "x", "2", "1"]


async def test_repeating_what_never_fits_is_an_error(script: Script) -> None:
    assert await texts(script(says("x", match="x"), onExhausted="repeat"), "y") == ["<bad_reply>"]


async def test_an_exhausted_script_echoes(script: Script) -> None:
    assert await texts(script(says("1"), onExhausted="echo"), "a", "my own words") == ["1", "my own words"]


async def test_forgotten_places_are_bounded(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_progress, "MAX_STOPPED", 2)
    provider = script({"match": "", "steps": [CALL, {"text": "on"}]})
    for _ in range(3):
        await ask(provider, "a")

    kept = [await _text_or_reason(provider, "a", *answered(f"scripted-{n}")) for n in (1, 3)]

    assert kept == ["", "on"]


@pytest.mark.parametrize(
    ("replies", "goes_on"),
    [
        ([fails(match="a"), says("ok", match="a")], True),
        ([fails(), says("ok")], True),
        ([fails({"text": "ok"}, match="a")], True),
        ([fails(match="a")], False),
        ([fails(match="a"), says("other", match="b")], False),
        ([fails()], False),
    ],
)
async def test_an_error_is_final_unless_the_script_has_something_else(
    script: Script, replies: list[dict[str, Any]], goes_on: bool
) -> None:
    with pytest.raises(ProviderFailed) as caught:
        await text(script(*replies), "a")
    assert caught.value.is_final is not goes_on
