"""What `sidecar config set KEY VALUE` makes of a value."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.cli.commands.config import as_toml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("80", 80),
        ("0.5", 0.5),
        ('"80"', "80"),
        ("[1, 2]", [1, 2]),
        ('["run(git log *)", "edit(src/**)"]', ["run(git log *)", "edit(src/**)"]),
        ("['read(.env)']", ["read(.env)"]),
        ("[]", []),
        ('{TOKEN = "x y"}', {"TOKEN": "x y"}),
        ("run(git log *)", "run(git log *)"),
        ("[run(git log *)]", "[run(git log *)]"),
        ("echo:", "echo:"),
        ("scripted:my file.json", "scripted:my file.json"),
        ("", ""),
    ],
)
def test_a_value_is_toml_or_else_text(text: str, value: Any) -> None:
    assert as_toml(text) == value
