"""docs/supervision.md names every error, event and status of the contract, and no other."""

from __future__ import annotations

import json
import re

from sidecar_protocol.errors import CODES

from .pages import ROOT, read_page

PAGE = read_page("docs/supervision.md")
CONTRACT = read_page("protocol/README.md")
SCHEMAS = json.loads((ROOT / "protocol" / "openrpc.json").read_text("utf-8"))["components"]["schemas"]


def rows(heading: str, columns: int) -> list[tuple[str, ...]]:
    """The first cells of the tables under a heading, without their backticks; the last cell must say something."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()]
    told = [cells for cells in lines if len(cells) == columns + 1 and len(cells[-1]) > 3]
    return [tuple(cell.strip("`") for cell in cells[:-1]) for cells in told if cells[0][-1:] != "-"]


def types_of(union: str) -> list[str]:
    """What `type` can be in a union of the contract, without its open last member."""
    members = [SCHEMAS[member["$ref"].rpartition("/")[2]] for member in SCHEMAS[union]["anyOf"]]
    consts = [member["properties"]["type"] for member in members]
    return [name for each in consts for name in (each.get("enum") or [each.get("const")]) if name]


def test_every_error_has_a_row_with_its_code() -> None:
    named = {name: int(code) for code, name in rows("What to do at each error", 2) if code != "code"}

    assert named == CODES


def test_every_event_and_status_has_a_row() -> None:
    named = [name for (name,) in rows("Every event, and how a UI shows it", 1)]

    assert sorted(named) == sorted([*types_of("Event"), *types_of("Status"), "event", "status"])


def test_every_reason_of_a_storage_and_a_provider_error_has_a_row() -> None:
    (meaning,) = re.findall(r"\| `storage` \|.*reason`: (.*?)\.", CONTRACT)
    provider = read_page("docs/providers.md").partition("\n## Failures\n")[2].partition(".")[0]
    reasons = {*meaning.split(", "), *re.findall(r"`(\w+)`", provider)}
    named = [name for (names,) in rows("What to do at each error", 1) for name in re.findall(r"\w+", names)]

    assert len(reasons) > 15
    assert reasons <= set(named)
