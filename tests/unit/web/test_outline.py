"""A long page in short."""

from __future__ import annotations

from sidecar.tools.web.outline import outline

HOW = "[900 lines kept]"


def words(text: str) -> int:
    return len(text.split())


def test_a_page_begins_and_then_its_headings_are_told_with_their_lines() -> None:
    page = "# Mills\n\nThey grind.\n\n## Wind\n\n```\n# no heading\n```\n\n## Water\n\nWheels."
    assert outline(page, HOW, 100, words) == (
        "[900 lines kept]\n# Mills\nThey grind.\n## Wind\n```\n# no heading\n```\n## Water\nWheels.\n"
        "… Headings, by line:\n1: # Mills\n5: ## Wind\n11: ## Water"
    )


def test_it_stays_within_its_tokens_and_says_what_is_left() -> None:
    page = "\n".join(f"## Part {number}\n{'word ' * 30}" for number in range(200))
    short = outline(page, HOW, 300, words)
    assert short is not None
    assert words(short) <= 300
    assert short.endswith(" more")
    assert "\n3: ## Part 1\n" in short


def test_a_page_without_headings_has_none() -> None:
    assert outline("one\ntwo\n# three", HOW, 100, words) is None
