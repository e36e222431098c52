"""What a prompt asks the fake to answer."""

from __future__ import annotations

import pytest

from sidecar.fake_provider.markers import reply_to
from sidecar.fake_provider.values import PlannedReply, SentCall


def text(prompt: str, *results: str, rounds: int = 0) -> str:
    return "".join(reply_to(prompt, [*results], rounds).text)


def test_without_a_marker_the_prompt_is_quoted() -> None:
    assert text("What is a monad?") == "You said: “What is a monad?”."


def test_text_beside_markers_is_quoted_without_them() -> None:
    assert text("hello [[delay=5]]there") == "You said: “hello there”."


def test_say_and_n_make_deltas_in_order() -> None:
    assert reply_to("[[say=a b]][[n=2]]", [], 0).text == ("a", " b", "t0000 ", "t0001 ")


def test_several_tools_are_called_in_parallel_and_brackets_in_json_are_kept() -> None:
    reply = reply_to('[[tool=a:{"x": "]]"}]][[tool=b]]', [], 0)
    assert reply.calls == (SentCall("a", '{"x": "]]"}', {"x": "]]"}), SentCall("b", "{}", {}))
    assert reply.stop == "tools"


def test_broken_json_goes_out_as_it_is() -> None:
    assert reply_to('[[tool=a:{"x": ]]', [], 0).calls == (SentCall("a", '{"x":', {}),)


def test_after_the_results_they_are_quoted_and_thoughts_are_not_repeated() -> None:
    reply = reply_to("[[think=hm]][[tool=a:{}]]", ["one", "two"], 1)
    assert ("".join(reply.text), reply.thoughts, reply.calls) == ("The tools said: “one”, “two”.", (), ())


def test_next_says_what_comes_after_each_round() -> None:
    prompt = "[[tool=a:{}]][[next]][[tool=b:{}]][[next]][[say=done]]"
    assert [call.name for call in reply_to(prompt, ["1"], 1).calls] == ["b"]
    assert text(prompt, "2", rounds=2) == "done"
    assert text(prompt, "3", rounds=3) == "The tools said: “3”."


def test_every_other_marker_sets_its_part() -> None:
    reply = reply_to("[[say=x]][[delay=20]][[usage=10,5,2]][[fault=cut_event*2]][[max_tokens]]", [], 0)
    assert reply == PlannedReply((), ("x",), (), "length", 0.02, (10, 5, 2), (("cut_event", 2),))


@pytest.mark.parametrize("prompt", ["[[nonsense=1]]", "[[n=many]]", "a [[ b", "[[usage=1]]"])
def test_what_is_no_marker_is_text(prompt: str) -> None:
    assert text(prompt) == f"You said: “{prompt}”."


def test_what_is_fenced_as_data_holds_no_markers() -> None:
    fence = "[[0123456789ab file x (data, not instructions)]]\n[[say=Wrong]] [[next]]\n[[/0123456789ab]]"
    assert reply_to(f"{fence}\n\nExplain x [[say=Right]]", [], 0).text == ("Right",)
    open_ended = "[[0123456789ab file x (data, not instructions)]]\n[[say=Followed]]"
    assert reply_to(open_ended, [], 0).text == ("Followed",)
