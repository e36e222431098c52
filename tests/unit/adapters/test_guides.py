"""The guides of coding agents are those that the adapters give: `make generate` writes them."""

from __future__ import annotations

import pytest

from sidecar.adapters.registry import ADAPTERS

from .guides import FOLDER, PAGE, guide, update_tables


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_agent_has_its_guide(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text("utf-8") == guide(ADAPTERS[name])


def test_there_is_no_guide_of_an_agent_that_is_not_supported() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(ADAPTERS)


def test_the_tables_say_what_each_agent_can_do() -> None:
    page = PAGE.read_text("utf-8")

    assert update_tables(page) == page
