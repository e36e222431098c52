"""The documentation site has every page of the repository; `make docs` and `make test-docs` build and open it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from .pages import ROOT

SITE = ROOT / "docs" / "site"


def load_build() -> ModuleType:
    """docs/site/build.py, which is a script and no part of a package."""
    spec = importlib.util.spec_from_file_location("build_site", SITE / "build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load_build()


def test_every_page_has_a_place_in_the_navigation() -> None:
    named = set(re.findall(r"^ +- (?:.*: )?(\S+\.md)$", build._configuration(), re.MULTILINE))
    pages = {str(path.relative_to(ROOT)) for pattern in build.SOURCES for path in ROOT.glob(pattern)}

    assert named == pages


@pytest.mark.parametrize(
    ("link", "adapted"),
    [
        ("[figures.md](figures.md)", "[Figures](figures.md)"),
        ("[here](figures.md#speed-and-memory)", "[here](figures.md#speed-and-memory)"),
        ("[a test](../tests/docs/test_site.py)", "[a test](../tests/docs/test_site.py.md)"),
        ("[tests](../tests/docs)", "[tests](../tests/docs.md)"),
        ("[the messages](../protocol/transcripts/)", "[the messages](../protocol/transcripts/README.md)"),
        ("[out](https://example.org/a.py)", "[out](https://example.org/a.py)"),
        ("```\n[a](../LICENSE)\n```", "```\n[a](../LICENSE)\n```"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(link: str, adapted: str) -> None:
    pages = {ROOT / "docs" / "figures.md", ROOT / "protocol" / "transcripts" / "README.md"}

    assert build._rewrite_links(ROOT / "docs" / "page.md", link, pages, set()) == adapted


def test_a_list_starts_after_a_blank_line() -> None:
    assert build._adapt("Some of it:\n- one\n- two\n") == "Some of it:\n\n- one\n- two\n"


def test_the_site_loads_nothing_from_other_hosts() -> None:
    theme = (SITE / "mkdocs.yml").read_text("utf-8")

    assert "font: false" in theme
    assert not [path for path in Path(SITE).glob("*.css") if "http" in path.read_text("utf-8")]
