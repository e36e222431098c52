"""The names of the tools that come with the program, which no tool of an app may take. Standard library only:
`initialize` is answered before the tools are imported. A test compares them with the tools.
"""

from __future__ import annotations

BUILT_IN = frozenset(
    {
        "ask_user",
        "edit_file",
        "fetch_url",
        "get_output",
        "git_diff",
        "glob",
        "grep",
        "index_path",
        "insert_line",
        "list_dir",
        "patch_file",
        "read_file",
        "run_batch",
        "run_code",
        "run_command",
        "search_context",
        "update_plan",
        "write_file",
    }
)
