"""Which tools a model needs most: what was used, then what looks at files and changes them."""

from __future__ import annotations

from sidecar.model import JsonObject
from sidecar.providers.base import ToolSpec
from sidecar.tools.builtin import builtin_tools
from sidecar.tools.people.app_tool import AppTool
from sidecar.tools.toolbox import Toolbox


def _box() -> Toolbox:
    schema: JsonObject = {"type": "object", "properties": {}}
    server = [AppTool(ToolSpec(f"mcp__far__{name}", "", schema), "read", None) for name in ("a", "b")]
    app = AppTool(ToolSpec("look", "", schema), "other", None)
    return Toolbox([*server, app, *builtin_tools("off")])


def test_files_come_first_and_servers_last() -> None:
    order = _box().names_by_need(())

    assert sorted(order) == [spec.name for spec in _box().specs]
    assert order[-2:] == ["mcp__far__a", "mcp__far__b"]
    places = [order.index(name) for name in ("read_file", "grep", "edit_file", "run_command", "ask_user")]
    assert places == sorted(places)
    assert order.index("look") > order.index("run_command")


def test_what_was_used_goes_before_everything() -> None:
    assert _box().names_by_need({"ask_user", "mcp__far__b"})[:2] == ["ask_user", "mcp__far__b"]
