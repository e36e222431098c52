"""The lines at the start of a conversation, and the token meter."""

from __future__ import annotations

import pytest

from sidecar.cli.terminal.status_lines import short_count, start_lines, token_meter


@pytest.mark.parametrize(
    ("project", "width", "lines"),
    [
        ("/home/me/thesis", 80, ["anthropic:claude · ~/thesis · mode ask"]),
        ("/home/me", 80, ["anthropic:claude · ~ · mode ask"]),
        ("/home/meg", 80, ["anthropic:claude · /home/meg · mode ask"]),
        (None, 80, ["anthropic:claude · no project · mode ask"]),
        ("/home/me/thesis", 30, ["anthropic:claude · ~/thesis", "mode ask"]),
        ("/srv/a/very/long/folder", 20, ["anthropic:claude", "…/a/very/long/folder", "mode ask"]),
    ],
)
def test_model_project_and_mode_are_on_as_few_lines_as_fit(
    project: str | None, width: int, lines: list[str]
) -> None:
    assert start_lines("anthropic:claude", project, "ask", "/home/me", width) == lines


USAGE = {"turn": {"inputTokens": 5120, "outputTokens": 320, "cost": 0.021}}


@pytest.mark.parametrize(
    ("more", "width", "meter"),
    [
        ({"window": {"used": 6000, "budget": 200_000}}, 80, "█░░░░░░░░░ 3 % of 200k tokens · 5.1k in, 320 out · $0.02"),
        ({"window": {"used": 6000, "budget": 200_000}}, 40, "█░░░░░░░░░ 3 % of 200k tokens"),
        ({"window": {"used": 0, "budget": 8000}}, 40, "░░░░░░░░░░ 0 % of 8k tokens"),
        ({"window": {"used": 9000, "budget": 8000}}, 40, "██████████ 112 % of 8k tokens"),
        ({"window": None}, 80, "5.1k in, 320 out · $0.02"),
        ({"turn": None}, 80, ""),
        ({"turn": {"cost": 0.0004}}, 80, "$0.0004"),
    ],
)  # fmt: skip
def test_the_meter_says_what_fits(more: dict[str, object], width: int, meter: str) -> None:
    assert token_meter({**USAGE, **more}, width) == meter


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (1234, "1.2k"),
        (34_567, "35k"),
        (999_999, "1M"),
        (1_500_000, "1.5M"),
    ],
)
def test_counts_are_short(tokens: int, text: str) -> None:
    assert short_count(tokens) == text
