"""What the tools that keep output out of the window cost in every request: their definitions, counted exactly."""

from __future__ import annotations

import msgspec

from sidecar.context.tokens.counting import TokenCounter
from sidecar.context.tokens.families import family_of
from sidecar.tools.builtin import builtin_tools
from sidecar.tools.shell.run_code import _spec as code_spec
from sidecar.tools.web.fetch_url import FetchUrl

MOST = 1200

EVERY = ["python", "javascript", "typescript", "shell", "ruby", "go", "rust", "php", "perl", "r", "elixir"]
"""Every language that code can be written in, as if all were installed."""


def test_the_definitions_of_the_index_tools_stay_small() -> None:
    names = ("search_context", "get_output", "index_path", "run_batch")
    specs = {tool.spec.name: tool.spec for tool in builtin_tools("off") if tool.spec.name in names}
    specs["fetch_url"] = FetchUrl.spec
    specs["run_code"] = code_spec(EVERY)
    counter, family = TokenCounter(), family_of("gpt-5")
    tokens = {name: counter.count(msgspec.json.encode(spec).decode(), family) for name, spec in specs.items()}

    assert len(tokens) == 6
    assert sum(tokens.values()) < MOST, tokens
