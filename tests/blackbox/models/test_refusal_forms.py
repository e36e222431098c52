"""However a provider words that it refuses some content, with whatever status: no later prompt is refused for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.fake_provider import in_thread
from tests.blackbox.models.talk import APIS, Talk
from tests.blackbox.models.test_media import encoded, left_out, show
from tests.blackbox.models.test_refused import notices
from tests.support import pictures as p
from tests.support.spawner import Spawner

pytestmark = pytest.mark.sampled(2)

Form = tuple[int, Any]

BAD = "plutonium"
FINE = "[[say=fine]]"

MEDIA: dict[str, Form] = {
    "Go's decoder of PNG": (500, {"error": "png: invalid format: not enough pixel data"}),
    "Go's decoder of JPEG": (500, {"error": "invalid JPEG format: short Huffman data"}),
    "Go's decoder of WebP": (500, {"error": "webp: invalid format"}),
    "Python's decoder": (
        500,
        {
            "object": "error",
            "message": "cannot identify image file <_io.BytesIO object at 0x7f>",
            "code": 500,
        },
    ),
    "no word about it": (500, {"error": {"message": "Internal Server Error", "code": 500}}),
    "not implemented": (501, {"error": {"message": "Not implemented"}}),
    "another schema": (
        422,
        {"detail": [{"loc": ["body", "messages", 0, "content"], "msg": "Input should be a string"}]},
    ),
    "another type of content": (
        400,
        {
            "error": {
                "message": "messages[0]: unknown variant `image_url`, expected `text` at line 1 column 100"
            }
        },
    ),
    "no endpoint for it": (
        404,
        {"error": {"message": "No endpoints found that support image input", "code": 404}},
    ),
    "a limit of the request": (
        400,
        {"error": {"message": "Request payload size exceeds the limit: 20971520 bytes."}},
    ),
}

CONTENT: dict[str, Form] = {
    "a policy as a missing permission": (
        403,
        {"code": "The caller does not have permission", "error": "Content violates usage guidelines."},
    ),
    "an inspection": (
        400,
        {
            "error": {
                "code": "data_inspection_failed",
                "message": "Input data may contain inappropriate content.",
            }
        },
    ),
    "a risk": (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}),
    "a page of a firewall": (
        403,
        "<html><head><title>Attention Required! | Cloudflare</title></head><body>You have been blocked</body></html>",
    ),
    "a firewall that does not accept it": (406, "<html><head><title>Not Acceptable!</title></head></html>"),
    "the law": (451, {"error": {"message": "Unavailable for legal reasons"}}),
    "too many tokens for a minute": (
        429,
        {
            "error": {
                "message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 98000. The"
                " input or output tokens must be reduced in order to run successfully.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
}


@pytest.mark.parametrize("form", MEDIA.values(), ids=MEDIA)
def test_an_image_that_is_refused_is_left_out(form: Form, api: str, spawn: Spawner, tmp_path: Path) -> None:
    with in_thread(forbidden=encoded(p.png(6, 6)), forbidden_answer=form) as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        assert talk.ask(FINE)["reason"] == "end_turn"
        assert show(talk, p.block(p.png(6, 6), name="big.png")) == "end_turn"
        assert "big.png is not shown: the provider refused it" in talk.asked[-1].body.decode()
        before = len(talk.asked)
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
        assert (len(talk.asked) - before, left_out(talk)) == (2, ["refused"])


@pytest.mark.parametrize("form", CONTENT.values(), ids=CONTENT)
def test_a_prompt_that_is_refused_is_not_sent_again(
    form: Form, api: str, spawn: Spawner, tmp_path: Path
) -> None:
    with in_thread(forbidden=BAD, forbidden_answer=form) as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        assert talk.ask(FINE)["reason"] == "end_turn"
        error = talk.ask(f"about {BAD}")["error"]["data"]
        assert (error["retryable"], error["action"]) in (
            (False, "edit_prompt"),
            (False, "compact"),
            (False, "choose_model"),
        )
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
        assert [
            turn.get("refused", False) for turn in talk.sidecar.call("chat/history", chatId="c")["turns"]
        ] == [
            False,
            True,
            False,
            False,
        ]


DECLINING = [name for name in APIS if name != "ollama"]
"""APIs that say why an answer ends."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("api", DECLINING)
def test_a_turn_that_was_broken_off_by_a_filter_does_not_silence_the_chat(
    api: str, spawn: Spawner, tmp_path: Path
) -> None:
    """Its prompt and half of its answer are history, and the model declines whatever follows them."""
    with in_thread(forbidden=f"{BAD} [", forbidden_answer="silence") as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        fake.forbidden = None
        assert talk.ask(f"about {BAD} [[fault=content_filter]]")["reason"] == "refusal"
        fake.forbidden = f"{BAD} ["
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
        assert notices(talk, "history_left_out") == ["history_left_out"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("api", DECLINING)
def test_a_prompt_that_the_model_declines_in_silence_is_not_sent_again(
    api: str, spawn: Spawner, tmp_path: Path
) -> None:
    with in_thread(forbidden=BAD, forbidden_answer="silence") as fake:
        talk = Talk(api, fake, spawn, tmp_path)
        assert talk.ask(FINE)["reason"] == "end_turn"
        assert talk.ask(f"about {BAD}")["reason"] == "refusal"
        assert [talk.ask(FINE)["reason"] for _ in range(2)] == ["end_turn"] * 2
        assert BAD not in talk.asked[-1].body.decode()
        assert len(talk.asked) == 4


@pytest.mark.sampled(1)
def test_an_image_is_sent_again_after_an_outage(talk: Talk) -> None:
    """The server broke with the image and without it: so it was not the image."""
    talk.fake.fault("server_error", 3)
    assert show(talk, p.block(p.png(6, 6))) == "error"
    assert talk.ask(FINE)["reason"] == "end_turn"
    assert encoded(p.png(6, 6)) in talk.asked[-1].body.decode()
