"""The lists of tool names outside of `tools` know every built-in tool."""

from __future__ import annotations

from sidecar.chat.request.project import FILE_TOOLS
from sidecar.chat.tool_calls.output_index import LOOKUP_TOOLS
from sidecar.tools.builtin import builtin_tools
from sidecar.tools.names import BUILT_IN
from sidecar.tools.web.fetch_url import FetchUrl

NOT_ABOUT_ONE_FILE = {
    *LOOKUP_TOOLS,
    "list_dir",
    "glob",
    "grep",
    "git_diff",
    "run_command",
    "run_code",
    "run_batch",
    "update_plan",
    "ask_user",
}
"""Tools whose calls are no activity in a file: they open no gate for the open files."""


def test_every_built_in_tool_is_a_file_tool_or_an_exception() -> None:
    names = {tool.spec.name for tool in builtin_tools("off")}

    assert names == FILE_TOOLS | NOT_ABOUT_ONE_FILE
    assert not FILE_TOOLS & NOT_ABOUT_ONE_FILE


def test_an_app_can_take_the_name_of_no_built_in_tool() -> None:
    assert {tool.spec.name for tool in builtin_tools("off")} | {FetchUrl.spec.name} == BUILT_IN
