"""The arguments of the built-in tools are on the page as the tools take them."""

from __future__ import annotations

from pathlib import Path

from sidecar.tools import document
from sidecar.tools.builtin import builtin_tools
from tests.unit.tools.context import properties_of


def test_the_page_lists_the_arguments_as_they_are() -> None:
    page = document.PAGE.read_text("utf-8")

    assert page == document.update_page(page), "run `python -m sidecar.tools.document`"


def test_every_argument_of_every_tool_has_a_row() -> None:
    rows = document.arguments()

    for tool in builtin_tools("off"):
        for name in properties_of(tool.spec.input_schema):
            assert f"| `{tool.spec.name}` | `{name}` |" in rows


def test_the_page_is_written_by_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{document.BEGIN}old\n{document.END}after\n")

    document.main(page)

    assert page.read_text() == f"before\n{document.BEGIN}{document.arguments()}{document.END}after\n"
