"""The head that stands for a text: its ends, what failed, what is hoped for; never more tokens than it may have."""

from __future__ import annotations

import pytest

from sidecar.index import preview

LINES = [f"compiled module {n} of the project" for n in range(5000)]
LINES[40] = "src/engine.c:17: error: turbine undeclared"
LINES[70] = "linker map written to build/propeller.map"
LINES[-1] = "make: *** [all] Error 2"
TEXT = "\n".join(LINES)


def _count(text: str) -> int:
    return len(text.split())


def _made(max_tokens: int, text: str = TEXT, intent: str | None = None) -> str:
    return preview(text, label="make all", id="out:abc", intent=intent, max_tokens=max_tokens, count=_count)


def test_it_shows_the_ends_what_failed_and_how_to_get_the_rest() -> None:
    made = _made(200)
    assert made.startswith("[out:abc make all: 5000 lines.")
    assert all(line in made for line in (LINES[0], LINES[-1], LINES[40]))
    assert "… " in made


def test_it_shows_what_is_hoped_for() -> None:
    assert LINES[70] not in _made(120)
    assert LINES[70] in _made(120, intent="Where is the linker map?")


def test_what_went_well_is_no_failure() -> None:
    fine = TEXT.replace("error: turbine undeclared", "0 errors, 0 warnings")
    assert "0 errors" not in _made(90, fine)


@pytest.mark.parametrize("max_tokens", [1, 5, 20, 60, 400])
@pytest.mark.parametrize("text", ["", "\n", "one", TEXT, "x " * 90_000, "\0\ud83d" * 500])
def test_it_keeps_to_its_tokens_and_names_the_text(max_tokens: int, text: str) -> None:
    made = _made(max_tokens, text)
    assert _count(made) <= max_tokens
    assert "out:abc" in made
