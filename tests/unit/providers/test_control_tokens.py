"""Which servers get no control tokens."""

from __future__ import annotations

import pytest

from sidecar.providers.endpoint import Endpoint, ProviderType
from sidecar.providers.http.provider import may_parse_control_tokens


@pytest.mark.parametrize(
    ("kind", "url", "official", "may"),
    [
        ("openai", "https://api.openai.com/v1", True, False),
        ("anthropic", "https://api.anthropic.com", True, False),
        ("openai", "http://127.0.0.1:8080/v1", False, True),
        ("ollama", "http://127.0.0.1:11434", True, True),
        ("anthropic", "https://gateway.test", False, True),
    ],
)
def test_vendors_keep_the_text_as_it_is(kind: ProviderType, url: str, official: bool, may: bool) -> None:
    assert may_parse_control_tokens(Endpoint(kind, kind, url, official)) == may
