from __future__ import annotations

from typing import Any

import pytest

from sidecar.frontends.mcp.arguments import read_arguments
from sidecar.frontends.mcp.messages import Schema

SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "names": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "object": {"type": "object"},
        "limit": {"type": "integer"},
        "deep": {"type": "boolean"},
        "text": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"names": "one"}, {"names": ["one"]}),
        ({"names": '["one", "two"]'}, {"names": ["one", "two"]}),
        ({"names": '{"a": 1}'}, {"names": ['{"a": 1}']}),
        ({"names": [1, True, "x"]}, {"names": ["1", "true", "x"]}),
        ({"counts": "[1, 2]"}, {"counts": [1, 2]}),
        ({"counts": ["3", 4.0]}, {"counts": [3, 4]}),
        ({"object": '{"a": 1}'}, {"object": {"a": 1}}),
        ({"object": "plain"}, {"object": "plain"}),
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": "5.0"}, {"limit": 5}),
        ({"limit": "five"}, {"limit": "five"}),
        ({"limit": "1e999"}, {"limit": "1e999"}),
        ({"limit": "nan"}, {"limit": "nan"}),
        ({"limit": 2.5}, {"limit": 2.5}),
        ({"deep": "True"}, {"deep": True}),
        ({"deep": "0"}, {"deep": False}),
        ({"deep": "perhaps"}, {"deep": "perhaps"}),
        ({"text": 7}, {"text": "7"}),
        ({"text": False}, {"text": "false"}),
        ({"text": None, "other": [1]}, {"other": [1]}),
        ('{"limit": 3}', {"limit": 3}),
        (None, {}),
    ],
)
def test_what_is_clear_becomes_what_the_schema_says(given: Any, read: dict[str, Any]) -> None:
    assert read_arguments(given, SCHEMA) == read


@pytest.mark.parametrize("given", [[1], "text", 7, "[1]", True])
def test_what_is_no_object_is_refused(given: Any) -> None:
    assert read_arguments(given, SCHEMA) is None
