"""What an error about parameters lists as allowed, for every kind of place in the contract's types."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sidecar_protocol.catalog import METHODS, Method
from sidecar_protocol.errors import RpcError

from sidecar.rpc.dispatch import decode_params
from sidecar.text.expected import allowed_at


@pytest.mark.parametrize(
    ("method", "params", "field", "allowed"),
    [
        (
            "prompt/send",
            {"promptId": "p", "delivery": "later"},
            "delivery",
            'one of "interrupt", "queue", "reject", "steer"',
        ),
        ("prompt/send", {"promptId": 7}, "promptId", "a string"),
        ("prompt/send", {}, "promptId", "a string"),
        ("prompt/send", {"promptId": "p", "text": 7}, "text", "a string or null"),
        (
            "prompt/send",
            {"promptId": "p", "context": {"patches": "sometimes"}},
            "context.patches",
            'one of "always", "auto", "never"',
        ),
        ("prompt/send", {"promptId": "p", "replace": {}}, "replace.turnId", "a string"),
        (
            "prompt/send",
            {"promptId": "p", "replace": {"turn": "t"}},
            "replace.turn",
            "one of `turnId`",
        ),
        (
            "prompt/send",
            {"promptId": "p", "content": [{"type": "text"}, {"type": "txt"}]},
            "content[1].type",
            'one of "audio", "image", "resource", "resource_link", "text"',
        ),
        (
            "prompt/send",
            {"promptId": "p", "content": "x"},
            "content",
            "an array, each of which is an object with `type`, `text`, `uri`, `range`, `data`, `path`, `blobId`,"
            " `mimeType`, `name`, `size` or null",
        ),
        (
            "chat/open",
            {"after": "end"},
            "after",
            'an object with `epoch`, `seq` or one of "start", "tail"',
        ),
        ("chat/archive", {"archived": "yes"}, "archived", "true or false"),
        ("chat/configure", {"set": []}, "set", "an object"),
        (
            "chat/archive",
            {"archive": True},
            "archive",
            "one of `chatId`, `projectPath`, `namespace`, `sessionId`, `archived`",
        ),
        ("ping", {"now": 1}, "now", "no members"),
    ],
)
def test_an_error_lists_what_is_allowed_at_the_place_that_it_names(
    method: str, params: dict[str, Any], field: str, allowed: str
) -> None:
    with pytest.raises(RpcError) as raised:
        decode_params(METHODS[method], params)

    assert raised.value.data["params"] == {"field": field, "expected": allowed}
    assert f"`{field}`" in raised.value.message


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_every_parameter_of_every_method_has_words_for_what_it_takes(method: Method) -> None:
    for field in msgspec.structs.fields(method.params):
        words = allowed_at(method.params, field.encode_name)
        assert words not in ("", "another type"), field.encode_name
