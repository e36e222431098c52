"""Keys and tokens are recognised by their form; text that only looks like one stays."""

from __future__ import annotations

import json
import random
import string

import pytest

from sidecar.text.secret_shapes import HIDDEN, hide_secrets

_RANDOM = random.Random(7)


def drawn(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(count - 2)) + "a1"


SECRETS = [
    f"sk-ant-api03-{drawn(60)}",
    f"sk-proj-{drawn(40)}",
    f"ghp_{drawn(36)}",
    f"github_pat_{drawn(60)}",
    f"glpat-{drawn(20)}",
    f"AIza{drawn(35)}",
    "AKIA" + "ABCDEFGH12345678",
    f"xoxb-{drawn(24)}",
    f"hf_{drawn(34)}",
    f"npm_{drawn(36)}",
    f"sk_live_{drawn(24)}",
    f"eyJ{drawn(20)}.eyJ{drawn(40)}.{drawn(30)}",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_hidden_wherever_it_stands(secret: str) -> None:
    for text in (f"use {secret} now", f'{{"key": "{secret}"}}', f"export A={secret}\n", json.dumps(secret)):
        hidden = hide_secrets(text)
        assert secret not in hidden
        assert HIDDEN in hidden


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=abcd1234efgh5678",
        'password: "correct1horse2battery"',
        '"client_secret": "abcd1234efgh"',
        "Authorization: Bearer abcdefgh1234567890ABCDEF",
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA7bq9\\nabc\\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_value_that_its_name_calls_a_secret_is_hidden(text: str) -> None:
    hidden = hide_secrets(text)

    assert HIDDEN in hidden
    assert not any(part in hidden for part in ("1234", "horse", "MIIEp"))


@pytest.mark.parametrize(
    "text",
    [
        "The key is under the mat, and the password is secret.",
        "sk-learn and ghp are names; token = parse(next_token)",
        "self.api_key = settings.values.api_key",
        "monkey: banana123456",
        "a skeleton key",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert hide_secrets(text) == text


def test_json_stays_json() -> None:
    value = {
        "a": SECRETS,
        "b": ['password=abcd1234"}', "-----BEGIN PRIVATE KEY-----"],
        "c": "-----END PRIVATE KEY-----",
    }

    assert set(json.loads(hide_secrets(json.dumps(value)))) == {"a", "b", "c"}
