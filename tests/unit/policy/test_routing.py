"""Which calls are shown a better way, and which are left alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sidecar.policy.denials import CODES
from sidecar.policy.document import PAGE, page
from sidecar.policy.routing import Redirect, redirect
from sidecar.settings.values import RoutingSettings

ALL = ("search_context", "index_path", "fetch_url", "run_batch", "glob")
SIZES = {"big.log": 100_000, "small.txt": 100}


def routed(
    command: str, routing: RoutingSettings | None = None, tools: tuple[str, ...] = ALL
) -> Redirect | None:
    return redirect("run_command", {"command": command}, SIZES.get, routing or RoutingSettings.of(), tools)


STEERED = {
    "pytest": "route_noisy", "python -m pytest tests": "route_noisy", "npm test": "route_noisy",
    "npm install": "route_noisy", "cargo build --release": "route_noisy", "make all": "route_noisy",
    "cd src && go test ./...": "route_noisy", "pip install -r r.txt": "route_noisy", "tox -e py311": "route_noisy",
    "cat big.log": "route_big_read", "cat small.txt big.log": "route_big_read",
    "curl https://example.com/page": "route_fetch", "curl -sL https://example.com": "route_fetch",
    "wget -qO- https://example.com": "route_fetch",
    "find / -name x": "route_listing", "git log": "route_listing", "git log -n 5000": "route_listing",
    "ls -laR": "route_listing", "git log --oneline": "route_listing",
}  # fmt: skip


@pytest.mark.parametrize("command", STEERED)
def test_what_would_fill_the_window_is_shown_where_to_go(command: str) -> None:
    found = routed(command)
    assert found is not None
    assert found.code == STEERED[command]
    assert found.instead in found.message
    assert "again" in found.message
    assert not re.search("block|den(y|ied)|forbid", found.message, re.IGNORECASE)


LEFT_ALONE = [
    "ls", "cat small.txt", "cat missing.txt", "pytest -q", "pytest | tail -20", "npm test > out.txt", "git log -5",
    "git log -n 10 --oneline", "git status", "npm run-script", "go version", "curl -o page.html https://example.com",
    "curl -X POST https://example.com -d x", "curl -I https://example.com", "find . -name x", "find src", "echo pytest",
    "cargo --version", "make --version", "$(pytest)", "for x in 1; do pytest; done", "grep -r x big.log",
]  # fmt: skip


@pytest.mark.parametrize("command", LEFT_ALONE)
def test_what_is_short_bounded_or_not_understood_is_left_alone(command: str) -> None:
    assert routed(command) is None


@pytest.mark.parametrize(
    ("command", "off"),
    [
        ("pytest", RoutingSettings.of(noisy_commands="off")),
        ("cat big.log", RoutingSettings.of(big_reads="off")),
        ("cat big.log", RoutingSettings.of(big_reads_bytes=200_000)),
        ("curl https://example.com", RoutingSettings.of(fetches="off")),
        ("git log", RoutingSettings.of(long_listings="off")),
        ("git log -n 500", RoutingSettings.of(long_listings_max=1000)),
    ],
)
def test_each_rule_is_switched_and_tuned_by_itself(command: str, off: RoutingSettings) -> None:
    assert routed(command) is not None
    assert routed(command, off) is None


def test_a_program_of_the_users_own_is_noisy_too() -> None:
    assert routed("terragrunt plan") is None
    found = routed("terragrunt plan", RoutingSettings.of(noisy_programs=("terragrunt",)))
    assert found is not None
    assert found.instead == "run_batch"


READS: list[tuple[dict[str, Any], bool]] = [
    ({"path": "big.log"}, True),
    ({"path": "big.log", "start_line": 1}, False),
    ({"path": "big.log", "end_line": 9}, False),
    ({"path": "small.txt"}, False),
    ({"path": "missing.txt"}, False),
    ({"path": 3}, False),
]


@pytest.mark.parametrize(("input", "steered"), READS)
def test_a_big_file_without_a_range_goes_to_the_index(input: dict[str, Any], steered: bool) -> None:
    assert (redirect("read_file", input, SIZES.get, RoutingSettings.of(), ALL) is not None) is steered


def test_nothing_is_redirected_to_a_tool_that_is_not_there() -> None:
    assert routed("pytest", tools=("search_context",)) is None
    assert routed("pytest", tools=("run_batch",)) is None


def test_the_page_of_codes_is_the_table() -> None:
    assert PAGE.read_text("utf-8") == page()
    assert all(f"| `{code}` |" in page() for code in CODES)
