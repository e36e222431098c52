from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.server.settings_conversion import project_settings
from sidecar.settings import SettingsError, document, load
from sidecar.settings.keys import KEYS, TABLES
from sidecar.tools.mcp import parse_servers

from .conftest import Places


def test_the_page_lists_the_keys_as_they_are() -> None:
    page = document.PAGE.read_text("utf-8")

    assert page == document.update_tables(page), "run `python -m sidecar.settings.document`"


def test_the_page_is_written_by_the_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{document.BEGIN}old\n{document.END}after\n")

    document.main(page)

    assert page.read_text() == f"before\n{document.BEGIN}{document.table()}{document.END}after\n"


def example(heading: str) -> str:
    """The first example under a heading of the page."""
    page = document.PAGE.read_text("utf-8").split(f"## {heading}\n")[1]
    return page.split("```toml\n")[1].split("```")[0]


def test_the_permissions_on_the_page_are_understood(places: Places) -> None:
    places.put(places.user, example("Permissions"))

    work = project_settings(load(environ={}))

    assert [rule.effect for rule in work.rules] == ["allow"] * 5 + ["ask"] * 2 + ["deny"] * 4
    assert (work.values.permissions.expiry, work.values.tools.deny) == (600, ("write_file",))


def test_the_sandbox_on_the_page_loads(places: Places) -> None:
    places.put(places.user, example("Sandbox"))

    settings = load(environ={})
    limits = settings.session.max_seconds, settings.session.max_tokens

    assert (settings.sandbox, *limits) == ("require", 1800, 2_000_000)


def test_the_window_on_the_page_loads(places: Places) -> None:
    places.put(places.user, example("What the model is sent"))

    settings = load(environ={})

    assert (settings.context.open_files, settings.context.gates.git_diff) == (16_000, "never")
    assert (settings.compaction.background, settings.compaction.keep_turns) == (0.7, 4)
    assert settings.rules.paths[1] == str(places.user.parent / "rules-of-the-team")


def test_the_servers_on_the_page_can_be_mounted(places: Places) -> None:
    places.put(places.user, example("MCP servers"))

    servers = parse_servers(load(environ={}).mcp_servers(), "mcp")

    assert {server.name: server.enabled for server in servers} == {
        "files": True,
        "notes": True,
        "web": True,
        "tracker": False,
    }


def test_the_example_on_the_page_loads(places: Places) -> None:
    page = document.PAGE.read_text("utf-8")
    places.put(places.user, page.split("```toml\n")[1].split("```")[0])

    assert load(environ={}).session.max_steps == 80


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n\n[session]\nmax_step = 3\n", 0),
        ('\ntitles = "word"\n', 1),
        ("\n\nmodel \n", 2),
    ],
)
def test_the_errors_on_the_page_are_the_programs(places: Places, text: str, line: int) -> None:
    shown = document.PAGE.read_text("utf-8").split("## Errors")[1].split("```")[1].strip().split("\n")[line]
    places.put(places.user, text)

    with pytest.raises(SettingsError) as caught:
        load(environ={})

    assert str(caught.value).replace(str(places.user), "config.toml") == shown


def test_every_table_of_a_key_is_known() -> None:
    assert {name.rpartition(".")[0] for name in KEYS} == {"", *TABLES}
