"""Every way in which a provider fails, over every API: each prompt ends with its reason, nothing is lost or doubled,
and the next prompt works."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sidecar.fake_provider import FAULTS, unused_port
from tests.blackbox.models.talk import Json, Talk
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(1)

ANSWER = "one two three four five six"


class Expected(NamedTuple):
    """The contract's reason, None for an answer in spite of the fault; whether it was tried again."""

    reason: str | None
    again: bool = False


CUT, AGAIN = Expected("stream_cut"), Expected("stream_cut", again=True)
TIMEOUT, SLOW = Expected("timeout"), Expected("timeout", again=True)
BUSY, LIMITED = Expected("overloaded", again=True), Expected("rate_limit", again=True)
WINDOW, FINE = Expected("window"), Expected(None)

EXPECTED: dict[str, Expected] = {
    "accept_close": AGAIN,
    "close_after_request": AGAIN,
    "reset_before_headers": AGAIN,
    "reset_mid": CUT,
    "cut_headers": AGAIN,
    "hang_before_headers": SLOW,
    "hang_after_headers": SLOW,
    "hang_mid": TIMEOUT,
    "hang_before_end": TIMEOUT,
    "keepalive_forever": SLOW,
    "cut_event": CUT,
    "cut_utf8": CUT,
    "cut_before_end": CUT,
    "end_without_terminal": CUT,
    "broken_chunk": CUT,
    "short_body": CUT,
    "bad_request": Expected("bad_reply"),
    "unauthorized": Expected("bad_key"),
    "payment_required": Expected("quota"),
    "forbidden": Expected("bad_key"),
    "model_not_found": Expected("model_unknown"),
    "request_timeout": SLOW,
    "too_large": WINDOW,
    "rate_limit": LIMITED,
    "rate_limit_seconds": LIMITED,
    "rate_limit_date": LIMITED,
    "rate_limit_ms": LIMITED,
    "rate_limit_long": Expected("rate_limit"),
    "quota": Expected("quota"),
    "server_error": BUSY,
    "bad_gateway_html": BUSY,
    "unavailable": BUSY,
    "overloaded": BUSY,
    "context_exceeded": WINDOW,
    "prompt_blocked": Expected("refused"),
    "content_filter": FINE,
    "redirect": Expected("bad_reply"),
    "error_at_start": BUSY,
    "error_mid": Expected("overloaded"),
    "context_exceeded_event": WINDOW,
    "malformed_event": Expected("bad_reply"),
    "invalid_utf8": Expected("bad_reply"),
    "empty_reply": Expected("bad_reply", again=True),
    "empty_body": AGAIN,
    "json_not_stream": Expected("bad_reply", again=True),
    "html_200": Expected("bad_reply", again=True),
    "gzip": FINE,
}

ELSEWHERE: dict[tuple[str, str], Expected] = {
    # Ollama's key is optional: without one, the provider's refusal means that it wants one.
    ("ollama", "unauthorized"): Expected("no_key"),
    ("ollama", "forbidden"): Expected("no_key"),
    # Its one JSON line is a stream of one line.
    ("ollama", "json_not_stream"): FINE,
    # These two check the model's calls themselves, and say that one is no good.
    ("gemini", "broken_arguments"): Expected(None, again=True),
    ("ollama", "broken_arguments"): Expected(None, again=True),
}

EITHER = {"broken_chunk", "short_body"}
"""How much came through before the break is up to the network: it may or may not have been tried again."""


@pytest.mark.sampled(1)
def test_every_fault_has_its_reason(talk: Talk) -> None:
    sent = {
        fault.name: talk.send(fault.name, f"[[say={ANSWER}]] {_marker(fault.name)}")
        for fault in FAULTS.values()
        if fault.apis is None or talk.api in fault.apis
    }
    assert len(sent) > 50
    _check(talk, sent)

    for name in sent:
        assert talk.ask("[[say=fine]]", chat=name)["reason"] == "end_turn", name
    assert not [request.rule for request in talk.asked if request.rule], "a request broke the API's rules"


def _check(talk: Talk, sent: dict[str, Json]) -> None:
    found = {name: _outcome(talk, prompt) for name, prompt in sent.items()}
    expected = {name: ELSEWHERE.get((talk.api, name)) or EXPECTED.get(name, FINE) for name in sent}
    for name in EITHER & found.keys():
        found[name] = found[name]._replace(again=False)
    assert found == expected
    for name, prompt in sent.items():
        said = talk.text(prompt)
        items = talk.items(prompt, "message")
        assert "".join(item["text"] for item in items) == said, f"{name}: what was shown is not what is kept"
        if name not in ("huge_event", "content_filter") and not _has_tool(name):
            assert ANSWER.startswith(said.strip()), f"{name}: something was doubled or lost"


def _outcome(talk: Talk, prompt: Json) -> Expected:
    """What became of a prompt; a retry must have told its attempt and its time."""
    ended = talk.end(prompt)
    errors = [event["data"] for event in talk.turn(prompt) if event["type"] == "error"]
    for number, error in enumerate(errors, 1):
        assert (error["willRetry"], error["attempt"], error["code"]) == (True, number, -32013)
        assert error["retryAt"] > 0
    states = [event["data"]["state"] for event in talk.turn(prompt) if event["type"] == "chat.state"]
    assert states.count("retrying") == len(errors)
    if ended["reason"] != "error":
        return Expected(None, bool(errors))
    assert ended["error"]["code"] == -32013
    assert ended["error"]["data"]["action"]
    return Expected(ended["error"]["data"]["reason"], bool(errors))


def _marker(name: str) -> str:
    """Faults of a request hit every try; those of a tool call only the step that makes it."""
    if _has_tool(name):
        return f'[[tool=look:{{"at": 1}}]] [[tool=look:{{"at": 2}}]] [[fault={name}*1]]'
    return f"[[fault={name}]]"


def _has_tool(name: str) -> bool:
    return "tool" in name or name == "broken_arguments"


@pytest.mark.sampled(1)
def test_a_fault_that_passes_is_not_noticed_in_the_answer(talk: Talk) -> None:
    passing = [name for name, expected in EXPECTED.items() if expected.again]
    sent = {name: talk.send(name, f"[[say={ANSWER}]] [[fault={name}*1]]") for name in passing}

    for name, prompt in sent.items():
        assert talk.end(prompt)["reason"] == "end_turn", name
        assert talk.text(prompt) == ANSWER, name


def test_nobody_listens(spawn: Spawner) -> None:
    env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{unused_port()}/v1", "OPENAI_API_KEY": "sk-not-a-real-one"}
    config = spawn.folder / "once.toml"
    config.write_text("[providers.openai]\nretries = 0\n")
    sidecar = spawn("--config", str(config), model="openai:fake", env=env)
    ended = sidecar.run("hello", chatId="c")["data"]

    error = ended["error"]["data"]
    assert (ended["reason"], error["reason"], error["retryable"]) == ("error", "offline", True)
    assert error["action"] == "check_network"


def test_no_key_is_told_before_anybody_is_asked(spawn: Spawner) -> None:
    for provider, variable in (("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")):
        sidecar = spawn(model=f"{provider}:some-model")
        error = sidecar.run("hello", chatId="c")["data"]["error"]["data"]

        assert (error["reason"], error["action"]) == ("no_key", "enter_key")
        assert variable in error["hint"]
